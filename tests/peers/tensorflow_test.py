"""Tests of bench/peers under TensorFlow. Usage: tensorflow_test.py FOLDER_OF_PEERS. Exit code 77: there is no
TensorFlow, or no PyTorch to compare its results with."""

import json
import pathlib
import subprocess
import sys
import unittest

SKIPPED = 77
PEERS = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True  # the source tree stays as it was
sys.path.insert(0, str(PEERS))

try:
    import tensorflow as tf
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)

import networks  # noqa: E402
import pytorch_networks  # noqa: E402
import tensorflow_networks  # noqa: E402


def small_network(norm):
    """Every kind of layer and padding."""
    layers = (
        networks.Conv(8, 7, 2),
        networks.Conv(8, 3, padding=2),
        networks.Conv(8, 5, padding="valid"),
        networks.halve(3, "same"),
        networks.bottleneck(2, 1, project=False),
        networks.bottleneck(4, 2, project=True),
        networks.module([networks.AVERAGE_POOL, networks.Conv(8)], [networks.Conv(4, (1, 3))], [networks.MAX_POOL]),
        networks.halve(3),
        networks.GlobalAverage(),
        networks.Flatten(),
        networks.Dense(7, relu=True),
        networks.Dropout(0.0),
        networks.Dense(5),
    )
    return networks.Network((3, 50, 46), 0, layers, norm)


def copy_weights(model, torch_model):
    """Both keep them in the order of the layers."""
    for variable, parameter in zip(model.trained, torch_model.parameters(), strict=True):
        value = parameter.detach()
        order = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}[value.dim()]
        variable.assign(value.permute(order).numpy())


class Networks(unittest.TestCase):
    def test_have_the_parameters_of_trireme(self):
        for name in networks.NETWORKS:
            with self.subTest(name):
                tensorflow_networks.make_network(name, training=True)  # raises if it has not

    def test_compute_the_same_as_under_pytorch(self):
        torch.manual_seed(1)
        images = torch.randn(2, 3, 50, 46)
        for norm in (None, networks.INCEPTION_NORM, networks.RESNET_NORM):
            for training in (True, False):
                with self.subTest(norm=norm, training=training):
                    network = small_network(norm)
                    torch_model, _ = pytorch_networks.Builder(norm).chain(network.layers, network.image_shape)
                    torch_model.train(training)
                    if not training:
                        pytorch_networks.fold_batch_norm(torch_model)
                    model = tensorflow_networks.Model(network, training)
                    copy_weights(model, torch_model)
                    result = torch.from_numpy(model(tf.constant(images.permute(0, 2, 3, 1).numpy())).numpy())
                    with torch.no_grad():
                        expected = torch_model(images)
                    torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-4)  # fp32, other order of sums


class Script(unittest.TestCase):
    def test_prints_what_it_measured(self):
        for arguments in ([], ["--forward-only"], ["--xla"], ["--xla", "--forward-only"], ["--precision=bf16"]):
            with self.subTest(arguments):
                command = [sys.executable, "-B", str(PEERS / "tensorflow_train.py"), "--model=mnist", "--batch-size=4",
                           "--num-batches=2", "--num-warmup-batches=1", "--num-intra-threads=1", *arguments]  # fmt: skip
                done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                result = json.loads(done.stdout)
                self.assertEqual(len(result["steps"][0][0]), 2)
                self.assertEqual(result["build"]["xla"], "--xla" in arguments)
                self.assertEqual(result["build"]["framework"], "tensorflow")
                self.assertEqual(result["config"]["forward_only"], "--forward-only" in arguments)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

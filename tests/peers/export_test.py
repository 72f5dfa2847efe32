"""Tests that other systems read what Trireme exports. Usage: export_test.py FOLDER_OF_PEERS TRIREME EXPORT_CASE STORED,
the last being the folder of the small network's file. Exit code 77: there is none of these systems here."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
PEERS = pathlib.Path(sys.argv[1])
TRIREME, EXPORT_CASE = sys.argv[2:4]
STORED = pathlib.Path(sys.argv[4])
# Every operation and padding is in these; TRIREME_TEST_ALL_NETWORKS=1 has all of them, which takes minutes.
NETWORKS = ["resnet50", "googlenet", "inception3", "vgg11", "alexnet", "resnet50_v2", "alexnet_cifar", "resnet20", "mnist"]
TOLERANCE = 1e-4  # fp32, other orders of sums
sys.dont_write_bytecode = True  # the source tree stays as it was
sys.path.insert(0, str(PEERS))


def missing(*packages):
    return [package for package in packages if importlib.util.find_spec(package) is None]


NEEDED = {"onnx": missing("numpy", "onnx", "onnxruntime"), "torch": missing("numpy", "torch"),
          "tensorboard": missing("tensorboard")}  # fmt: skip
if all(NEEDED.values()):
    print(f"skipped: no {', no '.join(' or '.join(packages) for packages in NEEDED.values())}")
    sys.exit(SKIPPED)


def needs(what):
    return unittest.skipIf(NEEDED[what], f"no {' or '.join(NEEDED[what])}")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def all_networks():
    return [model["name"] for model in json.loads(run(TRIREME, "models", "--json"))]


class Case:
    """A network with values, two images and what Trireme makes of them."""

    def __init__(self, network, *case):
        import numpy

        self.network = network
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        run(EXPORT_CASE, *(case or ("network", network)), str(self.path))
        self.logits = numpy.fromfile(self.path / "logits.f32", "float32").reshape(2, -1)
        self.images = numpy.fromfile(self.path / "images.f32", "float32").reshape(2, -1)
        # Logits that hardly depend on the images would say nothing.
        assert self.difference(self.logits[::-1]) > 10 * TOLERANCE, self.logits

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def export(self, file_format, *options):
        out = self.path / f"exported.{file_format}"
        run(TRIREME, "export", "--checkpoint", str(self.path / "checkpoint.safetensors"), "--format", file_format,
            "--out", str(out), *options)  # fmt: skip
        return out

    def difference(self, logits):
        """The largest, in shares of the largest logit: whatever the network's scale, 1e-4 means four digits."""
        import numpy

        assert logits.shape == self.logits.shape, logits.shape
        return float(numpy.abs(logits - self.logits).max() / numpy.abs(self.logits).max())


@needs("onnx")
class Onnx(unittest.TestCase):
    def open(self, path):
        import onnx
        import onnxruntime

        onnx.checker.check_model(str(path), full_check=True)  # with all shapes
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def test_runtime_gives_the_same_logits(self):
        for network in all_networks() if os.environ.get("TRIREME_TEST_ALL_NETWORKS") else NETWORKS:
            with self.subTest(network), Case(network) as case:
                session = self.open(case.export("onnx"))
                (source,) = session.get_inputs()
                self.assertEqual((source.name, source.shape[0]), ("images", "batch"))
                images = case.images.reshape(2, *source.shape[1:])
                (logits,) = session.run(["logits"], {"images": images})
                difference = case.difference(logits)
                print(f"{network}: ONNX Runtime differs by {difference:.1e}", flush=True)
                self.assertLess(difference, TOLERANCE)

    def test_network_of_a_users_own(self):
        with Case("mobile", "mobile") as case:
            session = self.open(case.path / "mobile.onnx")
            self.assertEqual(session.get_inputs()[0].shape, ["batch", 3, 16, 16])
            (logits,) = session.run(["logits"], {"images": case.images.reshape(2, 3, 16, 16)})
            self.assertLess(case.difference(logits), TOLERANCE)

    def test_batch_size_may_be_fixed(self):
        with Case("resnet20") as case:
            session = self.open(case.export("onnx", "--batch-size", "2"))
            self.assertEqual(session.get_inputs()[0].shape, [2, 3, 32, 32])
            (logits,) = session.run(["logits"], {"images": case.images.reshape(2, 3, 32, 32)})
            self.assertLess(case.difference(logits), TOLERANCE)

    def test_stored_logits_are_those_of_the_stored_file(self):
        import numpy

        images = (numpy.arange(2 * 2 * 8 * 8) * 37 % 129 - 64).astype("float32").reshape(2, 2, 8, 8) / 64
        (logits,) = self.open(STORED / "small.onnx").run(["logits"], {"images": images})
        stored = json.loads((STORED / "small_logits.json").read_text(encoding="utf-8"))
        numpy.testing.assert_allclose(logits.ravel(), stored, rtol=1e-5, atol=1e-5)


def read_safetensors(path):
    import numpy

    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__")
    for name, entry in header.items():
        begin, stop = (end + offset for offset in entry["data_offsets"])
        yield name, numpy.frombuffer(data[begin:stop], "float32").reshape(entry["shape"])


@needs("torch")
class PyTorch(unittest.TestCase):
    """The networks of bench/peers, which were written independently, with exported weights."""

    def layers(self, module):
        """With values, in Trireme's order."""
        import pytorch_networks
        from torch import nn

        children = list(module.children())
        if isinstance(module, pytorch_networks.Residual):
            children = [module.shortcut, module.body]
        if isinstance(module, (nn.Conv2d, nn.Linear, nn.BatchNorm2d)):
            yield module
        for child in children:
            yield from self.layers(child)

    def load(self, model, tensors):
        import torch

        for layer in self.layers(model):
            values = layer.state_dict()  # without scales that are always 1
            for name in ["weight", "bias", "running_mean", "running_var"]:
                if name in values:
                    _, stored = next(tensors)
                    with torch.no_grad():
                        values[name].copy_(torch.from_numpy(stored.copy()).reshape(values[name].shape))
        self.assertEqual(list(tensors), [])

    def test_gives_the_same_logits(self):
        import networks
        import pytorch_networks
        import torch

        for network in ["resnet50", "inception3", "googlenet", "mnist"]:
            with self.subTest(network), Case(network) as case:
                model = pytorch_networks.make_network(network).eval()
                self.load(model, read_safetensors(case.export("safetensors")))
                shape = networks.NETWORKS[network].image_shape
                with torch.inference_mode():
                    logits = model(torch.from_numpy(case.images).reshape(2, *shape)).numpy()
                difference = case.difference(logits)
                print(f"{network}: PyTorch differs by {difference:.1e}", flush=True)
                self.assertLess(difference, TOLERANCE)


@needs("tensorboard")
class TensorBoard(unittest.TestCase):
    def test_reads_scalars(self):
        from tensorboard.backend.event_processing import event_accumulator

        with tempfile.TemporaryDirectory() as folder:
            run(EXPORT_CASE, "events", folder)
            events = event_accumulator.EventAccumulator(folder)
            events.Reload()
            self.assertEqual(sorted(events.Tags()["scalars"]), ["learning_rate", "loss"])
            loss = [(event.step, event.wall_time, round(event.value, 6)) for event in events.Scalars("loss")]
            self.assertEqual(loss, [(1, 101, 1), (2, 102, 0.5), (3, 103, 0.333333)])
            self.assertEqual([event.value for event in events.Scalars("learning_rate")], [0.5] * 3)
            self.assertEqual(events.file_version, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

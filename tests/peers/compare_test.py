"""Tests of bench/peers. Usage: compare_test.py FOLDER_OF_PEERS TRIREME. Exit code 77: there is no PyTorch here."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
PEERS = pathlib.Path(sys.argv[1])
TRIREME = sys.argv[2]
sys.dont_write_bytecode = True  # the source tree stays as it was
sys.path.insert(0, str(PEERS))

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)

import compare  # noqa: E402
import contestants  # noqa: E402
import networks  # noqa: E402


def run_compare(*arguments):
    command = [sys.executable, "-B", str(PEERS / "compare.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


class Networks(unittest.TestCase):
    def test_have_the_parameters_and_shapes_of_trireme(self):
        listed = subprocess.run([TRIREME, "models"], capture_output=True, text=True, check=True).stdout
        lines = {line.split()[0]: line for line in listed.splitlines() if line}
        for name, network in networks.NETWORKS.items():
            with self.subTest(name):
                channels, height, width = network.image_shape
                for text in (f" {height}x{width}x{channels} ", f" {network.classes:,} ", f" {network.parameters:,} "):
                    self.assertIn(text, lines[name])
                model = networks.make_network(name).eval()
                with torch.inference_mode():
                    self.assertEqual(model(torch.zeros(1, *network.image_shape)).shape, (1, network.classes))

    def test_folding_batch_norm_changes_nothing(self):
        convolution = networks.Convolutions(networks.norm_without_gamma)
        model = nn.Sequential(convolution(3, 8, 3), networks.Bottleneck(convolution, 8, 4, 2)).eval()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.bias)
                nn.init.normal_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2)
        images = torch.randn(2, 3, 8, 8)
        with torch.inference_mode():
            expected = model(images)
            networks.fold_batch_norm(model)
            torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-4)  # fp32, other order of sums
        self.assertFalse(any(isinstance(module, nn.BatchNorm2d) for module in model.modules()))


class Summary(unittest.TestCase):
    def test_takes_ratios_within_rounds_and_finds_the_best(self):
        speeds = {"trireme": [10, 20, 30], "slow": [5, 4, 3], "fast": [5, 10, 10]}
        samples = [
            {"contestant": name, "images_per_second": values[i], "peak_rss_bytes": i}
            for i in range(3)
            for name, values in speeds.items()
        ]
        field = [contestants.Contestant(name, ()) for name in speeds]
        summary = compare.summarize(samples, field)
        self.assertEqual(summary["best_pytorch"], "fast")
        self.assertEqual(summary["rows"][2]["trireme_ratio"], {"median": 2, "min": 2, "max": 3})
        self.assertEqual(summary["rows"][1]["images_per_second"], {"median": 4, "min": 3, "max": 5})


class Compare(unittest.TestCase):
    def test_prints_ratios_and_keeps_every_sample(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "comparison.json"
            done = run_compare("mnist:4", "mnist:4:forward", "--trireme", TRIREME, "--no-tcmalloc",
                               "--only=as installed", "--steps=2", "--warmup=1", "--rounds=2", "--threads=1",
                               "--json", str(path))  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([file.name for file in pathlib.Path(folder).iterdir()], [path.name])
            kept = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(done.stdout.count("Trireme / best PyTorch"), 2)
        self.assertEqual([comparison["mode"] for comparison in kept["comparisons"]], ["train", "forward"])
        for comparison in kept["comparisons"]:
            self.assertEqual([sample["round"] for sample in comparison["samples"]], [1, 1, 2, 2])
            order = [sample["framework"] for sample in comparison["samples"]]
            self.assertEqual(order, ["trireme", "pytorch", "pytorch", "trireme"])
            for sample in comparison["samples"]:
                self.assertEqual(len(sample["step_seconds"]), 2)
                self.assertGreater(sample["images_per_second"], 0)
                self.assertGreater(sample["peak_rss_bytes"], 1 << 20)
                self.assertIn("mnist", sample["command"])

    def test_says_what_is_missing(self):
        cases = [
            (["--trireme=/nowhere/trireme"], "/nowhere/trireme is not a program"),
            (["--trireme", TRIREME, "--python=/nowhere/python"], "cannot run /nowhere/python"),
            (["--trireme", TRIREME, "--no-tcmalloc", "--only=nothing"], "no such configuration"),
            (["nosuchnetwork:4", "--trireme", TRIREME, "--no-tcmalloc", "--steps=1"], "unknown model 'nosuchnetwork'"),
            (["mnist"], "is not MODEL:BATCH"),
        ]
        for arguments, message in cases:
            with self.subTest(message):
                done = run_compare(*arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

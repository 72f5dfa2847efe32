"""Tests of bench/peers. Usage: compare_test.py FOLDER_OF_PEERS TRIREME. Exit code 77: there is no PyTorch here."""

import copy
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

import contestants  # noqa: E402
import networks  # noqa: E402
import pytorch_networks  # noqa: E402
import summary  # noqa: E402


# An interpreter under which one configuration cannot run.
FAILS_CHANNELS_LAST = """#!/bin/sh
case "$*" in *"--layout channels_last --model"*) echo "no such luck" >&2; exit 1 ;; esac
exec {python} "$@"
"""


def run_compare(*arguments):
    python = [] if any(argument.startswith("--python") for argument in arguments) else ["--python", sys.executable]
    command = [sys.executable, "-B", str(PEERS / "compare.py"), *arguments, *python]
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
                model = pytorch_networks.make_network(name).eval()
                with torch.inference_mode():
                    self.assertEqual(model(torch.zeros(1, *network.image_shape)).shape, (1, network.classes))

    def test_folding_batch_norm_changes_nothing(self):
        model = make_small_network().eval()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.bias)
                nn.init.normal_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2)
        images = torch.randn(2, 3, 8, 8)
        with torch.inference_mode():
            expected = model(images)
            pytorch_networks.fold_batch_norm(model)
            torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-4)  # fp32, other order of sums
        self.assertFalse(any(isinstance(module, nn.BatchNorm2d) for module in model.modules()))

    def test_layouts_of_onednn_change_nothing(self):
        torch.manual_seed(1)
        plain = make_small_network()
        blocked = pytorch_networks.use_mkldnn(copy.deepcopy(plain))
        images = torch.randn(4, 3, 8, 8)
        for model in (plain, blocked):
            model(images).square().mean().backward()
        # fp32, other order of sums
        trained = [parameter for parameter in blocked.parameters() if parameter.requires_grad]
        for expected, parameter in zip(plain.parameters(), trained, strict=True):
            torch.testing.assert_close(parameter.grad, expected.grad, rtol=1e-3, atol=1e-4)
        plain.eval()
        pytorch_networks.fold_batch_norm(plain)
        with torch.inference_mode():
            expected = plain(images)
            inference = pytorch_networks.use_mkldnn(plain)
            torch.testing.assert_close(inference(images), expected, rtol=1e-4, atol=1e-4)


def make_small_network():
    """With every kind of layer that the networks with batch norm have, and paddings of every kind."""
    layers = (
        networks.Conv(8, 3, 2),
        networks.bottleneck(2, 1, project=False),
        networks.bottleneck(4, 2, project=True),
        networks.halve(3, "same"),
        networks.module([networks.AVERAGE_POOL, networks.Conv(8)], [networks.Conv(4, (1, 3))], [networks.MAX_POOL]),
        networks.GlobalAverage(),
        networks.Flatten(),
        networks.Dense(5),
    )
    return pytorch_networks.Builder(networks.INCEPTION_NORM).chain(layers, (3, 8, 8))[0]


class Summary(unittest.TestCase):
    SPEEDS = {"trireme": [10, 20, 30], "slow 1": [5, 4, 3], "slow 2": [4, 3, 4], "fast": [5, 10, 10]}

    def summarize(self):
        samples = [
            {"contestant": name, "images_per_second": values[i], "peak_rss_bytes": i * 1e9}
            for i in range(3)
            for name, values in self.SPEEDS.items()
        ]
        field = [
            contestants.Contestant(name, name.split()[0], (), as_installed=name == "slow 2") for name in self.SPEEDS
        ]
        return summary.summarize(samples, field)

    def test_takes_ratios_within_rounds_and_finds_the_best(self):
        result = self.summarize()
        self.assertEqual(result["best"], "fast")
        self.assertEqual(result["best_of"], {"slow": "slow 1", "fast": "fast"})
        self.assertEqual(result["rows"][3]["trireme_ratio"], {"median": 2, "min": 2, "max": 3})
        self.assertEqual(result["rows"][1]["images_per_second"], {"median": 4, "min": 3, "max": 5})

    def test_as_markdown(self):
        comparison = {"title": "some work", "settings": "settings", "left_out": {"bad": "why"}}
        text = summary.to_markdown([{**comparison, "summary": self.summarize()}])
        lines = text.splitlines()
        self.assertEqual(lines[0], "| work | Trireme | as installed | best slow | best fast | Trireme / best peer | "
                                   "Trireme / as installed | peak RSS, GB | leanest peer, GB |")  # fmt: skip
        self.assertEqual(lines[2], "| some work | 20.00 | 4.00 (slow) | 4.00 (1) | 10.00 | 2.00x (2.00 to 3.00) | "
                                   "6.67x (2.50 to 7.50) | 1.00 | 1.00 (slow 1) |")  # fmt: skip
        self.assertIn("- some work: left out: bad: why", lines)


class Compare(unittest.TestCase):
    def test_prints_ratios_and_keeps_every_sample(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "comparison.json"
            table = pathlib.Path(folder) / "comparison.md"
            done = run_compare("mnist:4", "mnist:4:forward", "--trireme", TRIREME, "--no-tcmalloc",
                               "--only=as installed", "--steps=2", "--warmup=1", "--rounds=2", "--threads=1",
                               "--json", str(path), "--markdown", str(table))  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(file.name for file in pathlib.Path(folder).iterdir()), [path.name, table.name])
            kept = json.loads(path.read_text(encoding="utf-8"))
            rows = table.read_text(encoding="utf-8").splitlines()
        self.assertEqual(done.stdout.count("Trireme / best torch"), 2)
        self.assertTrue(rows[2].startswith("| mnist, batch 4, training |"))
        self.assertTrue(rows[3].startswith("| mnist, batch 4, forward only |"))
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

    def test_runs_onednn_layouts(self):
        done = run_compare("mnist:4", "mnist:4:forward", "--trireme", TRIREME, "--no-tcmalloc", "--only=mkldnn",
                           "--steps=1", "--warmup=0", "--rounds=1", "--threads=1")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("mkldnn): "), 2, done.stdout)

    def test_goes_on_without_a_peer_that_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder) / "python"
            python.write_text(FAILS_CHANNELS_LAST.format(python=sys.executable), encoding="utf-8")
            python.chmod(0o755)
            done = run_compare("mnist:4", "--trireme", TRIREME, "--no-tcmalloc", "--python", str(python),
                               "--steps=1", "--warmup=0", "--rounds=1", "--threads=1")  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"left out: torch \S+ channels_last: no such luck")
        self.assertRegex(done.stdout, r"Trireme / best torch \S+ \(torch \S+ (as installed|mkldnn|compile)\)")

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

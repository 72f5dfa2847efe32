"""Tests of bench/peers and of `trireme compare` with real PyTorch. Usage: compare_test.py FOLDER_OF_PEERS TRIREME. Exit
code 77: there is no PyTorch here."""

import copy
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

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

import differences  # noqa: E402
import networks  # noqa: E402
import pytorch_networks  # noqa: E402


def make_network(name, **options):
    """Without initial values, which take most of the time: for what depends on shapes alone."""
    with mock.patch.object(nn.Linear, "reset_parameters"), mock.patch.object(nn.Conv2d, "reset_parameters"):
        return pytorch_networks.make_network(name, **options)


class Networks(unittest.TestCase):
    def test_have_the_parameters_and_shapes_of_trireme(self):
        listed = subprocess.run([TRIREME, "models"], capture_output=True, text=True, check=True).stdout
        lines = {line.split()[0]: line for line in listed.splitlines() if line}
        for name, network in networks.NETWORKS.items():
            with self.subTest(name):
                channels, height, width = network.image_shape
                for text in (f" {height}x{width}x{channels} ", f" {network.classes:,} ", f" {network.parameters:,} "):
                    self.assertIn(text, lines[name])
                model = make_network(name).eval()
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


class Differences(unittest.TestCase):
    def test_are_counted_from_the_layers(self):
        for name in networks.NETWORKS:
            with self.subTest(name):
                model = make_network(name)
                pads = sum(isinstance(module, pytorch_networks.Pad) for module in model.modules())
                convolutions = sum(isinstance(module, nn.Conv2d) for module in model.modules())
                facts = differences.of_network(name)
                self.assertIn(f"{convolutions} convolutions", facts["same"])
                said = [text for text in facts["pytorch"] if "separate padding" in text]
                self.assertEqual([int(text.split()[0]) for text in said], [pads] if pads else [])

    def test_other_classes_and_no_dropout(self):
        model = make_network("vgg11", classes=1000, dropout=False)
        self.assertFalse(any(isinstance(module, nn.Dropout) for module in model.modules()))
        self.assertEqual(networks.find_network("vgg11", 1000).classes, 1000)


class Compare(unittest.TestCase):
    """`trireme compare` on a network that takes milliseconds."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def run_compare(self, *arguments, python=sys.executable, frameworks="pytorch", rounds=2, out="study", peers=PEERS):
        command = [TRIREME, "compare", "--model=mnist", "--batch-size=4", "--threads=1", "--num-batches=2",
                   "--num-warmup-batches=1", f"--rounds={rounds}", f"--frameworks={frameworks}", f"--python={python}",
                   f"--peers-dir={peers}", f"--out={self.folder / out}", *arguments]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    def records(self, out="study"):
        return {path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf-8"))
                for path in (self.folder / out / "runs").iterdir()}  # fmt: skip

    def own_peers(self, *changes):
        """The folder of the scripts with some of them changed."""
        folder = self.folder / "peers"
        shutil.copytree(PEERS, folder)
        for script, old, new in changes:
            text = (folder / script).read_text(encoding="utf-8")
            self.assertIn(old, text)
            (folder / script).write_text(text.replace(old, new), encoding="utf-8")
        return folder

    def quick_peers(self, *changes):
        """Does not load PyTorch, which takes seconds, to say that it is there: for what ends before PyTorch runs."""
        members = {"__version__": torch.__version__, **({"compile": True} if hasattr(torch, "compile") else {})}
        return self.own_peers(("describe.py", "        import torch\n", f"        torch = type('', (), {members!r})\n"),
                              *changes)  # fmt: skip

    def check_record(self, record):
        study = record["study"]
        self.assertEqual(record["schema"], "trireme.run/1")
        self.assertEqual(study["cell"]["model"], "mnist")
        self.assertEqual(record["config"]["forward_only"], study["cell"].get("forward-only", False))
        self.assertEqual(record["config"]["num_intra_threads"], 1)
        self.assertEqual(record["config"]["batch_size"], 4)
        self.assertEqual([len(steps) for steps in record["steps"][0]], [2])
        self.assertGreater(record["results"]["images_per_second"], 0)
        self.assertGreater(record["results"]["peak_rss_bytes"], 1 << 20)
        self.assertEqual(study["kind"], "forward_backward" if "forward-only" in study["cell"] else "bars")

    def test_runs_in_turns_and_goes_on_where_it_was(self):
        self.assertEqual(self.run_compare(rounds=1).returncode, 0)
        before = {name: record["started"] for name, record in self.records().items()}
        done = self.run_compare(rounds=2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        records = self.records()
        for name, started in before.items():
            self.assertEqual(records[name]["started"], started)
        for name, record in records.items():
            with self.subTest(name):
                self.check_record(record)
        frameworks = [record["study"]["framework"] for record in records.values()]
        self.assertEqual(sorted(frameworks), ["pytorch"] * 2 + ["trireme"] * 2)
        machines = {record["machine"]["cpu"] + str(record["machine"]["cores"]) for record in records.values()}
        self.assertEqual(len(machines), 1)
        journal = (self.folder / "study" / "journal.log").read_text(encoding="utf-8")
        order = re.findall(r"start \S*framework-(\w+)\.r", journal)
        self.assertEqual(order, ["trireme", "pytorch", "pytorch", "trireme"])
        self.assertRegex(done.stdout, r"mnist +4 +pytorch +[\d.]+ +[\d.]+ % +[\d.]+ +[\d.]+x +[\d.]+x to [\d.]+x")
        self.assertIn("mnist, the same: 3,274,634 parameters", done.stdout)
        self.check_that_another_study_is_refused()

    def check_that_another_study_is_refused(self):
        peers = self.quick_peers(("describe.py", '"OMP_PLACES": "cores"', '"OMP_PLACES": "threads"'))
        other = self.run_compare("--precision=bf16", peers=peers)
        self.assertEqual(other.returncode, 2)
        self.assertIn("fixed.precision", other.stderr)
        other = self.run_compare(peers=peers, rounds=3)
        self.assertEqual(other.returncode, 2, other.stdout)
        self.assertRegex(other.stderr, r"framework-pytorch\.r1\.json is the record of another run: its study\.command is ")
        self.assertIn("OMP_PLACES=threads", other.stderr)

    def test_every_configuration_that_is_here(self):
        done = self.run_compare("--both", frameworks="pytorch-as-installed,pytorch-mkldnn,pytorch-jit", rounds=1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("pytorch-jit cannot do model=mnist batch-size=4 forward-only=false", done.stdout)
        records = self.records()
        self.assertEqual(len(records), 7)
        for name, record in records.items():
            with self.subTest(name):
                self.check_record(record)

    def test_several_processes(self):
        done = self.run_compare("--workers=2", rounds=1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for record in self.records().values():
            self.assertEqual(record["config"]["workers"], 2)
            self.assertEqual(len(record["steps"]), 2)
            self.assertEqual(len([task for task in record["cluster"] if task["role"] == "worker"]), 2)

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_every_way_on_a_gpu(self):
        for arguments in (["--way=eager", "--precision=fp16"], ["--way=graph", "--precision=tf32"], ["--way=compile"],
                          ["--way=graph", "--forward-only", "--precision=bf16"]):  # fmt: skip
            with self.subTest(arguments):
                command = [sys.executable, "-B", str(PEERS / "pytorch_gpu.py"), "--model=mnist", "--batch-size=4",
                           "--num-warmup-batches=3", "--num-batches=2", *arguments]  # fmt: skip
                done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                record = json.loads(done.stdout)
                self.assertEqual(record["config"]["device"], "cuda")
                self.assertEqual([len(steps) for steps in record["steps"][0]], [2])
                self.assertGreater(min(record["steps"][0][0]), 0)
                self.assertGreater(record["machine"]["gpu"]["training_bytes"], 1 << 20)

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_without_a_gpu_none_runs_on_one(self):
        done = self.run_compare("--device=cuda", peers=self.quick_peers())
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no other framework can do this: pytorch cannot do", done.stderr)

    @unittest.skipIf(importlib.util.find_spec("horovod") is None, "needs Horovod")
    def test_horovod(self):
        done = self.run_compare("--workers=2", frameworks="pytorch,horovod", rounds=1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        records = {record["study"]["framework"]: record for record in self.records().values()}
        self.assertEqual(sorted(records), ["horovod", "pytorch", "trireme"])
        self.assertEqual(records["horovod"]["build"]["distributed"], "Horovod, gloo")
        # The same weights, batches and updates, whoever averages the gradients.
        for ours, theirs in zip(records["horovod"]["losses"], records["pytorch"]["losses"]):
            for a, b in zip(ours[0], theirs[0]):
                self.assertAlmostEqual(a, b, places=4)

    def test_a_script_that_fails_half_way_is_recorded_and_the_rest_goes_on(self):
        peers = self.own_peers(("pytorch_train.py", "        return loss.item()\n\n    return step\n\n\ndef make_forward",
                                "        raise RuntimeError('no such luck')\n\n    return step\n\n\ndef make_forward"))  # fmt: skip
        done = self.run_compare("--both", peers=peers)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("failed: model=mnist batch-size=4 forward-only=false pytorch: RuntimeError: no such luck", done.stdout)
        records = self.records()
        failed = [record for record in records.values() if "error" in record]
        self.assertEqual(len(failed), 1)  # a failure is not tried in later rounds
        self.assertIn("no such luck", failed[0]["error"])
        self.assertIsNone(failed[0]["results"])
        self.assertEqual(failed[0]["study"]["framework"], "pytorch")
        self.assertEqual(len(records), 7)
        self.assertRegex(done.stdout, r"mnist +4 +true +pytorch +[\d.]+")

    def test_one_worker_that_fails_ends_the_others(self):
        peers = self.own_peers(("pytorch_processes.py", "    ranks = exchange",
                                "    if rank == 1:\n        sys.exit('lost')\n    ranks = exchange"))  # fmt: skip
        done = self.run_compare("--workers=2", peers=peers, rounds=1)
        self.assertEqual(done.returncode, 1, done.stderr)
        failed = [record["study"]["framework"] for record in self.records().values() if "error" in record]
        self.assertEqual(failed, ["pytorch"])

    def test_several_processes_that_are_ended_leave_nothing(self):
        command = [sys.executable, "-B", str(PEERS / "pytorch_processes.py"), "--workers=2", "--model=mnist",
                   "--num-batches=1000000"]  # fmt: skip
        with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(self.folder)}) as starter:
            end = time.monotonic() + 60
            while not list(self.folder.glob("*/meeting")) and time.monotonic() < end:
                time.sleep(0.05)
            self.assertTrue(list(self.folder.glob("*/meeting")))
            starter.terminate()
            self.assertEqual(starter.wait(60), 128 + signal.SIGTERM)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_python_without_frameworks(self):
        peers = self.own_peers(("describe.py", "        import torch\n", "        raise ImportError('No module named torch')\n"))
        done = self.run_compare(peers=peers)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("nothing to compare with: pytorch: ", done.stderr)
        self.assertIn("(No module named torch); install it with tools/setup --peers", done.stderr)
        self.assertFalse((self.folder / "study").exists())

    def test_says_what_is_wrong(self):
        peers = self.quick_peers()
        cases = [
            ([], {"peers": "/nowhere"}, "has no describe.py"),
            ([], {"python": "/nowhere/python"}, "there is no program '/nowhere/python'"),
            ([], {"python": "/bin/true"}, "gave no description"),
            ([], {"frameworks": "theano"}, "unknown framework 'theano'"),
            (["--set", "batch-split=1"], {}, "batch-split: only Trireme has this option"),
            (["--model=alexnet"], {}, "have no 'alexnet'"),
            (["--study=nosuch"], {}, "there is no such file"),
        ]
        for arguments, settings, message in cases:
            with self.subTest(message):
                done = self.run_compare(*arguments, **{"peers": peers, **settings})
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(message, done.stderr)

    def test_the_study_of_cineca(self):
        command = [TRIREME, "compare", "--study=cineca", "--batch-size=2", "--rounds=1", "--frameworks=pytorch",
                   f"--python={sys.executable}", f"--peers-dir={self.quick_peers()}", "--dry-run"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for model in ("alexnet_owt", "overfeat", "vgg11"):
            for mode in ("true", "false"):
                for framework in ("trireme", "pytorch"):
                    self.assertIn(f"model={model} batch-size=2 forward-only={mode} {framework}\n", done.stdout)
        self.assertIn("changed on all sides: num-classes=1000 no-dropout=true", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

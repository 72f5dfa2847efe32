"""Tests of bench/processes.py. Usage: processes_test.py FOLDER_OF_BENCH TRIREME."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(sys.argv[1])
TRIREME = sys.argv[2]
sys.dont_write_bytecode = True  # the source tree stays as it was
sys.path.insert(0, str(BENCH))

import processes  # noqa: E402


def run_processes(*arguments):
    command = [sys.executable, "-B", str(BENCH / "processes.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


class Speed(unittest.TestCase):
    def test_counts_only_the_time_when_all_run(self):
        early = {"end": 14.0, "step_seconds": [1.0] * 4}  # from 10 to 14
        late = {"end": 17.0, "step_seconds": [2.0, 2.0, 2.0]}  # from 11 to 17
        speed = processes.measure_speed([early, late], batch=6)
        self.assertAlmostEqual(speed["common_seconds"], 3)  # from 11 to 14
        self.assertAlmostEqual(speed["sum_images_per_second"], 6 / 1 + 6 / 2)
        self.assertAlmostEqual(speed["images_per_second"], 2 * 6 / 2)  # the slower one, twice

    def test_refuses_processes_that_hardly_met(self):
        runs = [{"end": 4.0, "step_seconds": [1.0] * 4}, {"end": 7.0, "step_seconds": [1.0] * 4}]
        with self.assertRaisesRegex(processes.BenchError, "ran together for 1.00 s of 4.00 s"):
            processes.measure_speed(runs, batch=1)


# Claims steps of a second each without taking them, so that no timing decides here, and says where it ran.
STAND_IN = """#!{python}
import json, os, sys
value = lambda name: sys.argv[sys.argv.index(name) + 1]
assert len(os.sched_getaffinity(0)) >= int(value("--num-intra-threads"))
record = {{"steps": [[[1.0] * int(value("--num-batches"))]], "build": {{}}, "machine": {{}}}}
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], sorted(os.sched_getaffinity(0))]) + "\\n")
with open(value("--record"), "w") as file:
    json.dump(record, file)
"""


class Processes(unittest.TestCase):
    def test_share_cores_and_batch(self):
        cores = processes.usable_cores()
        if len(cores) < 2:
            self.skipTest("needs two cores")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            program = folder / "trireme"
            program.write_text(STAND_IN.format(python=sys.executable, log=str(folder / "log")), encoding="utf-8")
            program.chmod(0o755)
            done = run_processes("mnist:8:forward", "--trireme", str(program), "--steps=10000", "--rounds=1",
                                 "--cores=2", "--one-process-options=--alone",
                                 "--json", str(folder / "json"))  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            kept = json.loads((folder / "json").read_text(encoding="utf-8"))
            calls = [json.loads(line) for line in (folder / "log").read_text(encoding="utf-8").splitlines()]
        calls = [(arguments, where) for arguments, where in calls if "10000" in arguments]  # not the preparation
        self.assertEqual(len(calls), 3)
        (alone,) = [where for arguments, where in calls if "--alone" in arguments]
        halves = sorted(where for arguments, where in calls if "--alone" not in arguments)
        self.assertEqual(alone, sorted(cores[0] + cores[1]))
        self.assertEqual(halves, sorted([cores[0], cores[1]]))
        for arguments, _ in calls:
            self.assertEqual(arguments[arguments.index("--batch-size") + 1], "8" if "--alone" in arguments else "4")
            self.assertIn("--forward-only", arguments)
        self.assertEqual([(row["processes"], row["threads"]) for row in kept["summary"]], [(1, 2), (2, 1)])
        for row in kept["summary"]:  # a second for all 8 images in both settings
            self.assertAlmostEqual(row["images_per_second"]["median"], 8, places=2)
            self.assertAlmostEqual(row["ratio_to_one_process"]["median"], 1, places=2)
        self.assertIn("2 x 1 ", done.stdout)

    def test_reads_records_of_trireme(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "processes.json"
            done = run_processes("mnist:4", "--trireme", TRIREME, "--steps=2", "--warmup=0", "--rounds=1", "--cores=1",
                                 "--json", str(path))  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(folder), [path.name])
            kept = json.loads(path.read_text(encoding="utf-8"))
        (sample,) = kept["samples"]
        (seconds,) = sample["processes_step_seconds"]
        self.assertEqual(len(seconds), 2)
        self.assertAlmostEqual(sample["images_per_second"], 4 * 2 / sum(seconds), delta=0.01 * 8 / sum(seconds))

    def test_says_what_is_wrong(self):
        cases = [
            (["mnist"], "is not MODEL:BATCH"),
            (["mnist:8", "--trireme=/nowhere/trireme"], "/nowhere/trireme is not a program"),
            (["mnist:8", "--trireme", TRIREME, "--processes=0"], "is not a list of numbers of processes"),
            (["mnist:8", "--trireme", TRIREME, "--cores=1", "--processes=1,2"], "2 processes do not share 1 cores"),
            (["mnist:8", "--trireme", TRIREME, "--cores=100000"], "usable ones"),
            (["nosuchnetwork:8", "--trireme", TRIREME], "unknown model 'nosuchnetwork'"),
        ]
        for arguments, message in cases:
            with self.subTest(message):
                done = run_processes(*arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

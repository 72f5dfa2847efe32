#!/usr/bin/python3
"""What is left of the speed when other programs want the same cores: Trireme and PyTorch beside busy processes.

Every round runs each contestant beside 0, 1, 2, ... processes that do nothing but compute, in turns. Printed are medians of
images per second and the share of the contestant's own speed on the quiet machine.

  bench/under_load.py --model mnist --batch-size 8 --busy 0 1 2 4 --rounds 3
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from common import ROOT, positive, say

TIMEOUT = 300


class Busy:
    """Processes that compute without end."""

    def __init__(self, count):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
        if count:
            time.sleep(0.3)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def contestants(options):
    work = ["--model", options.model, "--batch-size", str(options.batch_size), "--num-warmup-batches", "5",
            "--num-batches", "100000", "--max-seconds", str(options.seconds)]  # fmt: skip
    for binary in options.binary:
        yield str(binary), [str(binary), "bench", *work, *options.options]
    if options.pytorch:
        yield "pytorch", [options.pytorch, str(ROOT / "bench" / "peers" / "pytorch_train.py"), *work]


def images_per_second(name, command, environment):
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.json"
        line = command if name == "pytorch" else [*command, "--record", str(record)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT, check=False,
                              env={**os.environ, **environment})
        if done.returncode != 0:
            sys.exit(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}")
        data = json.loads(done.stdout if name == "pytorch" else record.read_text())
        return data["results"]["images_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", nargs="+", type=pathlib.Path, default=[ROOT / "build" / "release" / "trireme"])
    parser.add_argument("--pytorch", metavar="PYTHON", help="a Python with PyTorch, to compare with")
    parser.add_argument("--model", default="mnist")
    parser.add_argument("--batch-size", type=positive, default=8)
    parser.add_argument("--busy", nargs="+", type=int, default=[0, 1, 2, 4], help="busy processes beside")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of each run")
    parser.add_argument("--environment", nargs="*", default=[], metavar="NAME=VALUE", help="for all runs")
    parser.add_argument("options", nargs="*", help="after --: further options of `trireme bench`")
    options = parser.parse_args()
    environment = dict(text.split("=", 1) for text in options.environment)
    speeds = {}
    for number in range(options.rounds):
        for busy in options.busy:
            for name, command in contestants(options):
                with Busy(busy):
                    speed = images_per_second(name, command, environment)
                speeds.setdefault((name, busy), []).append(speed)
                say(f"round {number + 1}: {name} beside {busy}: {speed:.1f} images/s")
    for (name, busy), values in speeds.items():
        quiet = statistics.median(speeds[(name, options.busy[0])])
        median = statistics.median(values)
        print(f"{name:40} beside {busy}: {median:9.1f} images/s ({min(values):.1f} to {max(values):.1f}), "
              f"{100 * median / quiet:5.1f} % of its speed beside {options.busy[0]}")


if __name__ == "__main__":
    main()

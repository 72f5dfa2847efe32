#!/usr/bin/env python3
"""Two builds of trireme on the same work, in turns: does a change cost speed?

  bench/builds.py OLD NEW [--rounds N] [--work MODEL:BATCH ...] [--jobs one two servers] [--bench="--device cuda ..."]

Each round runs every piece of work once with each build, in alternating order. Printed is the ratio new / old of each round's
speeds: its median and range. Work is done by one process, by two workers that all-reduce, and by two workers and a server.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

from common import BenchError, parse_work, positive, ratio_text, say, spread

JOBS = {"one": [], "two": ["--workers", "2"], "servers": ["--workers", "2", "--ps", "1"]}


def speed(binary, work, job, options, folder):
    record = pathlib.Path(folder) / "record.json"
    launch = ["launch", *JOBS[job], "--"] if JOBS[job] else []
    timings = f"{folder}/{'old' if binary == options.old else 'new'}.json"
    command = [binary, *launch, "bench", "--model", work.model, "--batch-size", str(work.batch), "--num-warmup-batches", "2",
               "--num-batches", "1000000", "--max-seconds", str(options.seconds), "--tune-cache", timings, "--record", str(record),
               *shlex.split(options.bench)]
    if work.mode == "forward":
        command.append("--forward-only")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return json.loads(record.read_text())["results"]["images_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--seconds", type=positive, default=8, help="of each run")
    parser.add_argument("--work", type=parse_work, nargs="+",
                        default=[parse_work(text) for text in ("resnet50:16", "inception3:8", "mnist:64")])
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS))
    parser.add_argument("--bench", default="", metavar="OPTIONS", help="more options of trireme bench")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for work in options.work:
            for job in options.jobs:
                ratios = []
                for round_number in range(options.rounds + 1):  # the first one times kernels
                    order = [options.old, options.new] if round_number % 2 else [options.new, options.old]
                    speeds = {binary: speed(binary, work, job, options, folder) for binary in order}
                    ratio = speeds[options.new] / speeds[options.old]
                    say(f"{work}, {job}, round {round_number}: {speeds[options.old]:.2f} and {speeds[options.new]:.2f} images/s")
                    if round_number > 0:
                        ratios.append(ratio)
                print(f"{work}, {job}: new / old {ratio_text(spread(ratios))}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"builds.py: {error}")

#!/usr/bin/env python3
"""Two builds of trireme on the same work, in turns: does a change cost speed?

  bench/builds.py OLD NEW [--rounds N] [--work MODEL:BATCH ...] [--jobs one two servers] [--bench="--device cuda ..."]

Each round runs every piece of work once with each build, in alternating order; a run has ten parts. Printed are ratios new / old:
of the mean speeds of each round (median and range), and of the fastest parts of all, which other load on the machine disturbs
least. Work is done by one process, by two workers that all-reduce, and by two workers and a server.
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


PARTS = 10


def speeds_of(build, work, job, options, folder, steps=0):
    """Mean and fastest part, in images/s; without steps, one part of the given seconds."""
    record = pathlib.Path(folder) / "record.json"
    launch = ["launch", *JOBS[job], "--"] if JOBS[job] else []
    timings = f"{folder}/{build}.json"
    command = [getattr(options, build), *launch, "bench", "--model", work.model, "--batch-size", str(work.batch), "--num-warmup-batches", "2",
               "--tune-cache", timings, "--record", str(record), *shlex.split(options.bench)]
    if steps:
        command += ["--num-batches", str(steps), "--repeats", str(PARTS)]
    else:
        command += ["--num-batches", "1000000", "--max-seconds", str(options.seconds)]
    if work.mode == "forward":
        command.append("--forward-only")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    results = json.loads(record.read_text())["results"]
    return results["images_per_second"], max(results["images_per_second_per_repeat"] or [0])


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
                for build in ("old", "new"):  # times kernels, and tells how long a step is
                    first, _ = speeds_of(build, work, job, options, folder)
                workers = 1 if job == "one" else 2
                steps = max(1, round(first * options.seconds / (work.batch * workers * PARTS)))
                ratios, fastest = [], {"old": 0, "new": 0}
                for round_number in range(1, options.rounds + 1):
                    speeds = {}
                    for build in ("old", "new")[:: 1 if round_number % 2 else -1]:
                        speeds[build], best = speeds_of(build, work, job, options, folder, steps)
                        fastest[build] = max(fastest[build], best)
                    say(f"{work}, {job}, round {round_number}: {speeds['old']:.2f} and {speeds['new']:.2f} images/s")
                    ratios.append(speeds["new"] / speeds["old"])
                print(f"{work}, {job}: new / old {ratio_text(spread(ratios))}, of the fastest parts "
                      f"{fastest['new'] / fastest['old']:.3f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"builds.py: {error}")

#!/usr/bin/env python3
"""Does --parallel auto predict well? Runs the plans that it considered, in turns, and compares speeds.

  bench/plans.py TRIREME MODEL:BATCH [--launch="--hosts a,b,c,d --workers 4"] [--plans N] [--rounds N] [--bench="..."]

The first run chooses among all plans. Then data parallelism and the N fastest by prediction run, each once per round.
Printed are images/s, predicted and measured (median and range), and both relative to data parallelism.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import tempfile

from common import BenchError, parse_work, positive, say, spread


def run(options, parallel, folder):
    """The record of one run."""
    record = pathlib.Path(folder) / "record.json"
    command = [options.trireme, "launch", *shlex.split(options.launch), "--", "bench", "--model", options.work.model,
               "--batch-size", str(options.work.batch), "--num-warmup-batches", "1", "--num-batches", str(options.steps),
               "--tune-cache", f"{folder}/timings.json", "--record", str(record), *shlex.split(options.bench), *parallel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{shlex.join(command)}: {done.stderr.strip()[-800:]}")
    return json.loads(record.read_text())


def options_of(plan, number, folder):
    more = ["--recompute", plan["recompute"]] if "recompute" in plan else []
    if plan["parallel"] == "data":
        return ["--parallel", "data", *more]
    more += ["--micro-batches", str(plan["micro_batches"]), "--schedule", plan["schedule"]]
    if plan["schedule"] == "interleaved":  # chooses its parts by itself
        return ["--parallel", plan["parallel"], *more]
    path = pathlib.Path(folder) / f"plan-{number}.json"
    path.write_text(json.dumps({"stages": plan["stages"]}))
    return ["--parallel", str(path), *more]


def name_of(plan):
    name = " ".join([plan["parallel"], *([plan["recompute"]] if "recompute" in plan else [])])
    return name if plan["parallel"] == "data" else f"{name} {plan['schedule']} m={plan['micro_batches']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trireme")
    parser.add_argument("work", type=parse_work)
    parser.add_argument("--launch", default="--workers 2", metavar="OPTIONS", help="of trireme launch")
    parser.add_argument("--plans", type=positive, default=3, help="besides data parallelism")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--steps", type=positive, default=8, help="of each run")
    parser.add_argument("--bench", default="", metavar="OPTIONS", help="more options of trireme bench")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first = run(options, ["--parallel", "auto"], folder)
        plans = [plan for plan in first["plans"] if not plan.get("problem")]
        chosen = next(plan for plan in plans if plan.get("chosen"))
        say(f"{options.work}: chosen {name_of(chosen)}, which ran at {first['results']['images_per_second']:.2f} images/s")
        data = [plan for plan in plans if name_of(plan) == "data"]
        others = sorted((plan for plan in plans if plan not in data), key=lambda plan: -plan["images_per_second"])
        plans = data + others[:options.plans]
        speeds = [[] for _ in plans]
        for number in range(options.rounds):
            for index, plan in enumerate(plans):
                record = run(options, options_of(plan, index, folder), folder)
                speeds[index].append(record["results"]["images_per_second"])
                say(f"round {number + 1}: {name_of(plan)}: {speeds[index][-1]:.2f} images/s, predicted "
                    f"{plan['images_per_second']:.2f}")
    measured = [spread(each) for each in speeds]
    for plan, speed in zip(plans, measured):
        predicted = plan["images_per_second"]
        print(f"{options.work}: {name_of(plan)}: predicted {predicted:.2f}, measured {speed['median']:.2f} "
              f"({speed['min']:.2f} to {speed['max']:.2f}) images/s, measured / predicted {speed['median'] / predicted:.2f}, "
              f"{speed['median'] / measured[0]['median']:.2f} times data parallelism"
              f"{', chosen' if plan.get('chosen') else ''}")


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        raise SystemExit(f"plans.py: {error}") from error

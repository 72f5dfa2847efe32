#!/usr/bin/python3
"""`trireme tune` against exhaustive search: how near does it come to the best configuration, with how many trials?

Tunes, then sweeps every configuration of the space that the tune has searched (its plan.json says which), then runs
what the tune has chosen and the best that the sweep has found again, in turns, because the fastest of many noisy runs
looks faster than it is. The folders of both are kept and gone on with, as tune and sweep do. Ends with exit code 1
where the tune's choice is more than 5 % slower than the best, or took more than 15 % of the trials.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from common import ROOT, BenchError, positive

NEAR_ENOUGH = 0.95
FEW_ENOUGH = 0.15
MOST_STEPS = 2000  # of one run; tune has the same limit


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet20", help="(default: resnet20)")
    parser.add_argument("--batches", default="4,8,16,32,64,128", help="of a worker (default: 4,8,16,32,64,128)")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="as of tune, of all runs")
    parser.add_argument("--trial-seconds", type=float, default=1.5, help="steps of a run (default: 1.5)")
    parser.add_argument("--repeats", type=positive, default=1, help="of each configuration in the sweep (default: 1)")
    parser.add_argument("--rounds", type=positive, default=7, help="of the comparison at the end (default: 7)")
    parser.add_argument("--best", type=positive, default=5, help="of the sweep that are compared (default: 5)")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for the records")
    parser.add_argument("--trireme", type=pathlib.Path, default=ROOT / "build" / "release" / "trireme")
    return parser.parse_args()


def run(command, allowed=(0,)):
    line = shlex.join(map(str, command))
    print("+", line, flush=True)
    if subprocess.run(command, check=False).returncode not in allowed:
        raise BenchError(f"failed: {line}")


def tune_and_sweep(options, tune, sweep, config):
    settings = [word for setting in options.set for word in ("--set", setting)]
    run([options.trireme, "tune", "--model", options.model, "--batches", options.batches, *settings, "--budget", "2h",
         "--trial-time", f"{options.trial_seconds:g}s", "--out", tune, "--config-out", config])  # fmt: skip
    # 1: some configurations cannot be run, which the sweep has recorded.
    run([options.trireme, "sweep", tune / "plan.json", "--repeats", str(options.repeats), "--set",
         f"max-seconds={options.trial_seconds:g}", "--set", f"num-batches={MOST_STEPS}", "--out", sweep],
        allowed=(0, 1))  # fmt: skip


def read_records(folder):
    """By configuration: its command and what its runs have measured."""
    cells = {}
    seconds, runs = 0.0, 0
    for path in sorted((folder / "runs").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        study = record["study"]
        seconds += study["seconds"]
        runs += 1
        cell = cells.setdefault(json.dumps(study["cell"]), {"command": study["command"], "speeds": []})
        if "error" not in record:
            cell["speeds"].append(record["results"]["images_per_second"])
    return {"cells": cells, "seconds": seconds, "runs": runs}


def rank(cells):
    """Those that could be run, the fastest first."""
    measured = [name for name, cell in cells.items() if cell["speeds"]]
    return sorted(measured, key=lambda name: -statistics.median(cells[name]["speeds"]))


def chosen_cell(config, ranked):
    for name in ranked:
        if all(config.get(option) == value for option, value in json.loads(name).items()):
            return name
    raise BenchError("the sweep has no run of what the tune has chosen")


def measure(trireme, command):
    words = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "record.json"
        result = subprocess.run([str(trireme), *words[1:], "--record", str(path)], check=False, capture_output=True)
        if result.returncode != 0:
            raise BenchError(f"failed: {command}\n{result.stderr.decode()}")
        return json.loads(path.read_text(encoding="utf-8"))["results"]["images_per_second"]


def run_in_turns(options, commands):
    speeds = {name: [] for name in commands}
    names = list(commands)
    for number in range(options.rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            speeds[name].append(measure(options.trireme, commands[name]))
        print(f"round {number + 1} of {options.rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
    return speeds


def show(speeds, chosen):
    print(f"{'images/s':>9} {'min':>9} {'max':>9}")
    for name, values in sorted(speeds.items(), key=lambda item: -statistics.median(item[1])):
        text = " ".join(f"{option}={value}" for option, value in json.loads(name).items())
        mark = "  <- tune" if name == chosen else ""
        print(f"{statistics.median(values):9.1f} {min(values):9.1f} {max(values):9.1f}  {text}{mark}")


def check(options):
    """Whether the tune was good enough."""
    tune, sweep, config = options.folder / "tune", options.folder / "sweep", options.folder / "tuned.json"
    options.folder.mkdir(parents=True, exist_ok=True)
    tune_and_sweep(options, tune, sweep, config)
    tuned, swept = read_records(tune), read_records(sweep)
    ranked = rank(swept["cells"])
    chosen = chosen_cell(json.loads(config.read_text(encoding="utf-8")), ranked)
    contenders = [*ranked[: options.best], chosen]
    speeds = run_in_turns(options, {name: swept["cells"][name]["command"] for name in contenders})
    best = max(speeds, key=lambda name: statistics.median(speeds[name]))
    near = statistics.median(speeds[chosen]) / statistics.median(speeds[best])
    few = tuned["runs"] / swept["runs"]
    ratios = [a / b for a, b in zip(speeds[chosen], speeds[best])]
    print(f"\nexhaustive: {swept['runs']} runs of {len(swept['cells'])} configurations in {swept['seconds']:.0f} s")
    print(f"tune: {tuned['runs']} runs of {len(tuned['cells'])} configurations in {tuned['seconds']:.0f} s "
          f"({100 * tuned['seconds'] / swept['seconds']:.0f} %)")  # fmt: skip
    print(f"rank of the tune's choice in the sweep: {ranked.index(chosen) + 1}")
    show(speeds, chosen)
    print(f"trials: {100 * few:.1f} % of exhaustive search (at most {100 * FEW_ENOUGH:.0f} %)")
    print(f"speed: {100 * near:.1f} % of the best by medians (at least {100 * NEAR_ENOUGH:.0f} %), "
          f"{100 * min(ratios):.1f} to {100 * max(ratios):.1f} % in single rounds")  # fmt: skip
    return near >= NEAR_ENOUGH and few <= FEW_ENOUGH


def main():
    options = parse_arguments()
    try:
        sys.exit(0 if check(options) else 1)
    except (BenchError, OSError) as error:
        sys.exit(f"tune_check: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

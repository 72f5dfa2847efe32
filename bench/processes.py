#!/usr/bin/python3
"""One process against several on the same cores: `trireme bench` as N processes that share cores and batch.

Every round runs every setting once, all processes of a setting at the same time, each bound to cores of its own. They
exchange nothing, so that this bounds what data-parallel training with N processes could reach on this machine.

Only the time in which all processes are in their timed steps counts: when a step was is known from the record of the
process (step times) and the time at which it was written, right after the last step. In synchronous training all wait
for the slowest, so that the speed of a setting is N times that of its slowest process; the sum of the processes' own
speeds is given too.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from common import ROOT, BenchError, Work, parse_work, positive, ratio_text, replace_file, say, spread


@dataclasses.dataclass(frozen=True)
class Setting:
    processes: int
    threads: int  # of each process

    def __str__(self):
        return f"{self.processes} x {self.threads}"


def usable_cores():
    """The processors (hardware threads) of every usable core."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text(encoding="ascii") if siblings.exists() else cpu, []).append(cpu)
    return list(cores.values())


def parse_counts(text):
    counts = [int(word) if word.isdecimal() else 0 for word in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers of processes, such as 1,2,4")
    return counts


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", nargs="?", type=parse_work, default=Work("resnet50", 32, "train"),
                        metavar="MODEL:BATCH[:train|forward]",
                        help="the batch is that of all processes together (default: resnet50:32)")  # fmt: skip
    parser.add_argument("--processes", type=parse_counts, metavar="N,N,...",
                        help="(default: every divisor of the number of cores that divides the batch)")  # fmt: skip
    parser.add_argument("--cores", type=positive, help="use so many of the usable cores (default: all)")
    parser.add_argument("--rounds", type=positive, default=5, help="runs of each setting (default: 5)")
    parser.add_argument("--seconds", type=float, default=12, help="length of a run that --steps is chosen for "
                        "(default: 12)")  # fmt: skip
    parser.add_argument("--steps", type=positive, help="timed steps per run (default: as many as fill --seconds)")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them (default: 3)")
    parser.add_argument("--trireme", type=pathlib.Path, default=ROOT / "build/release/trireme", metavar="PROGRAM",
                        help="(default: build/release/trireme)")  # fmt: skip
    parser.add_argument("--trireme-options", type=shlex.split, default=[], metavar="TEXT",
                        help="more options for `trireme bench`, as one word")  # fmt: skip
    parser.add_argument("--one-process-options", type=shlex.split, default=[], metavar="TEXT",
                        help="more options for the one process on all cores only")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one run may take (default: 900)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="keep every sample")
    options = parser.parse_args()
    if options.warmup < 0:
        parser.error("--warmup is negative")
    return options


def choose_settings(options, cores):
    batch = options.work.batch
    counts = options.processes or [n for n in range(1, cores + 1) if cores % n == 0 and batch % n == 0]
    for n in counts:
        if cores % n or batch % n:
            raise BenchError(f"--processes: {n} processes do not share {cores} cores and a batch of {batch} evenly")
    if 1 not in counts:
        raise BenchError("--processes: 1 must be among them: the others are compared with it")
    return [Setting(n, cores // n) for n in sorted(set(counts))]


def command_of(options, setting, steps, warmup, record):
    forward = ["--forward-only"] if options.work.mode == "forward" else []
    more = options.one_process_options if setting.processes == 1 else []
    return [str(options.trireme), "bench", "--model", options.work.model,
            "--batch-size", str(options.work.batch // setting.processes), "--num-batches", str(steps),
            "--num-warmup-batches", str(warmup), "--num-intra-threads", str(setting.threads), *forward,
            *options.trireme_options, *more, "--record", str(record)]  # fmt: skip


class Process:
    """One `trireme bench` on some cores, and its record afterwards."""

    def __init__(self, command, cores, folder, name):
        self.command = command
        self.record_path = pathlib.Path(command[-1])
        self.log_path = folder / f"{name}.log"
        processors = {cpu for core in cores for cpu in core}
        with self.log_path.open("wb") as log:
            # The affinity of a child is set before the program starts, and it binds its threads within it.
            self.popen = subprocess.Popen(
                command, stdout=log, stderr=log, preexec_fn=lambda: os.sched_setaffinity(0, processors)
            )

    def wait(self, deadline):
        what = shlex.join(self.command)
        try:
            status = self.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise BenchError(f"not finished in time (--timeout): {what}") from None
        if status != 0:
            lines = self.log_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise BenchError("\n".join([f"exit code {status}: {what}", *lines[-5:]]))

    def stop(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()

    def read(self):
        record = json.loads(self.record_path.read_text(encoding="utf-8"))
        return {"end": self.record_path.stat().st_mtime,
                "step_seconds": [seconds for repeat in record["steps"][0] for seconds in repeat],
                "record": record}  # fmt: skip


def run_processes(options, setting, cores, steps, warmup, count=None):
    """Runs `count` processes of a setting at the same time, by default all of them."""
    deadline = time.monotonic() + options.timeout
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        processes = []
        for i in range(count or setting.processes):
            share = cores[i * setting.threads:(i + 1) * setting.threads]  # fmt: skip
            process = Process(command_of(options, setting, steps, warmup, folder / f"{i}.json"), share, folder, str(i))
            stack.callback(process.stop)
            processes.append(process)
        for process in processes:
            process.wait(deadline)
        return [process.read() for process in processes]


def steps_within(step_seconds, end, window):
    """How many steps lie in a window of time, parts of steps counted as such; the last step ended at `end`."""
    steps = 0.0
    for seconds in reversed(step_seconds):
        begin = end - seconds
        steps += max(0.0, min(end, window[1]) - max(begin, window[0])) / seconds
        end = begin
    return steps


def measure_speed(runs, batch):
    """Of processes that ran at the same time with `batch` images each, over the time when all were measuring."""
    window = (max(run["end"] - sum(run["step_seconds"]) for run in runs), min(run["end"] for run in runs))
    length = window[1] - window[0]
    longest = max(sum(run["step_seconds"]) for run in runs)
    if length < 0.5 * longest:
        raise BenchError(f"the processes ran together for {max(length, 0):.2f} s of {longest:.2f} s only: they "
                         "started at different times; use more steps (--steps or --seconds)")  # fmt: skip
    speeds = [batch * steps_within(run["step_seconds"], run["end"], window) / length for run in runs]
    return {"images_per_second": len(runs) * min(speeds), "sum_images_per_second": sum(speeds),
            "common_seconds": length}  # fmt: skip


def choose_steps(options, setting, cores):
    if options.steps:
        return options.steps
    (run,) = run_processes(options, setting, cores, 2, 1)
    return max(5, min(10000, round(options.seconds / min(run["step_seconds"]))))


def run_rounds(options, settings, cores, steps, keep):
    for number in range(options.rounds):
        first = number % len(settings)
        for setting in settings[first:] + settings[:first]:
            runs = run_processes(options, setting, cores, steps, options.warmup)
            speed = measure_speed(runs, options.work.batch // setting.processes)
            say(f"{options.work}: round {number + 1} of {options.rounds}: {setting}: "
                f"{speed['images_per_second']:.2f} images/s")  # fmt: skip
            keep({"round": number + 1, **vars(setting), **speed, "processes_step_seconds":
                  [run["step_seconds"] for run in runs]}, runs[0]["record"])  # fmt: skip


def summarize(samples, settings):
    def column(setting, key):
        return [sample[key] for sample in samples if sample["processes"] == setting.processes]

    one = column(settings[0], "images_per_second")
    rows = []
    for setting in settings:
        speeds = column(setting, "images_per_second")
        rows.append({
            **vars(setting),
            "images_per_second": spread(speeds),
            "sum_images_per_second": statistics.median(column(setting, "sum_images_per_second")),
            "ratio_to_one_process": spread([a / b for a, b in zip(speeds, one)]),
        })  # fmt: skip
    return rows


def to_text(title, rows):
    lines = [title, "processes x threads  images/s      min      max  sum of processes  / one process, per round"]
    for row in rows:
        speed = row["images_per_second"]
        name = f"{row['processes']} x {row['threads']}"
        lines.append(f"{name:<19}  {speed['median']:8.2f} {speed['min']:8.2f} {speed['max']:8.2f}  "
                     f"{row['sum_images_per_second']:16.2f}  {ratio_text(row['ratio_to_one_process'])}")  # fmt: skip
    best = max(rows[1:], key=lambda row: row["images_per_second"]["median"], default=None)
    if best:
        ratio = rows[0]["images_per_second"]["median"] / best["images_per_second"]["median"]
        name = f"{best['processes']} x {best['threads']}"
        lines.append(f"one process / best of several ({name}): {ratio:.2f}x of medians")
    return "\n".join(lines)


def compare(options):
    if not os.access(options.trireme, os.X_OK):
        raise BenchError(f"{options.trireme} is not a program; build it (make build) or name it with --trireme")
    cores = usable_cores()
    if options.cores and options.cores > len(cores):
        raise BenchError(f"--cores {options.cores}: there are {len(cores)} usable ones")
    cores = cores[:options.cores]  # fmt: skip
    settings = choose_settings(options, len(cores))
    if os.getloadavg()[0] > 0.5:
        say(f"Warning: load average {os.getloadavg()[0]:.1f}: something else is running, and figures will be noisy")
    for setting in settings:  # kernels are timed and kept now, by one process of each setting alone
        say(f"{options.work}: preparing {setting}")
        run_processes(options, setting, cores, 1, 0, count=1)
    steps = choose_steps(options, settings[0], cores)
    content = {
        "schema": "trireme.processes/1",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": sys.argv,
        "machine": {"host": platform.node(), "kernel": platform.release(), "load_before": os.getloadavg()},
        **vars(options.work),
        "cores": cores,
        "steps": steps,
        "warmup": options.warmup,
        "samples": [],
    }

    def keep(sample, record):
        content["samples"].append(sample)
        content["machine"].update(record["machine"])
        content["build"] = record["build"]
        if options.json:
            replace_file(options.json, json.dumps(content, indent=1) + "\n")

    run_rounds(options, settings, cores, steps, keep)
    content["summary"] = summarize(content["samples"], settings)
    if options.json:
        replace_file(options.json, json.dumps(content, indent=1) + "\n")
    title = f"{options.work} over all processes, {len(cores)} cores, {steps} steps after {options.warmup}"
    print(to_text(title, content["summary"]))


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that no process is left behind
    try:
        compare(options)
    except (BenchError, OSError) as error:
        sys.exit(f"processes: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Parameter servers against all-reduce: `trireme launch ... bench` with 1 to as many servers as workers.

Every round runs every setting once, in turn, so that what changes on the machine in the course of time changes all
alike; a setting is compared with the all-reduce of the same round. Bytes are what the servers have counted.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import tempfile

from common import ROOT, BenchError, Work, parse_work, positive, ratio_text, replace_file, say, spread


MODES = {
    "sync": ["--variable-update", "parameter_server"],
    "async": ["--variable-update", "parameter_server", "--async"],
    "replicated": ["--variable-update", "distributed_replicated"],
}


@dataclasses.dataclass(frozen=True)
class Setting:
    mode: str  # of MODES, or all_reduce
    protocol: str = "mpi"
    servers: int = 0

    def launch_options(self):
        return ["--ps", str(self.servers)] if self.servers else []

    def bench_options(self):
        if self.mode == "all_reduce":
            return ["--variable-update", "all_reduce"]
        return [*MODES[self.mode], "--protocol", self.protocol]

    def __str__(self):
        return f"{self.mode} over {self.protocol}" + (f", {self.servers} ps" if self.servers else "")


ALL_REDUCE = Setting("all_reduce")


def words(text):
    return [word for word in text.split(",") if word]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", nargs="*", type=parse_work, metavar="MODEL:BATCH",
                        help="the batch is that of one worker (default: resnet50:16)")  # fmt: skip
    parser.add_argument("--workers", type=positive, default=2, help="(default: 2)")
    parser.add_argument("--servers", type=words, help="numbers of servers (default: 1 to the number of workers)")
    parser.add_argument("--modes", type=words, default=list(MODES), help=f"(default: {','.join(MODES)})")
    parser.add_argument("--protocols", type=words, default=["grpc", "grpc+ucx", "grpc+mpi"],
                        help="(default: grpc,grpc+ucx,grpc+mpi)")  # fmt: skip
    parser.add_argument("--rounds", type=positive, default=3, help="runs of each setting (default: 3)")
    parser.add_argument("--steps", type=positive, default=10, help="timed steps per run (default: 10)")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them (default: 2)")
    parser.add_argument("--trireme", type=pathlib.Path, default=ROOT / "build/release/trireme", metavar="PROGRAM",
                        help="(default: build/release/trireme)")  # fmt: skip
    parser.add_argument("--launch-options", type=shlex.split, default=[], metavar="TEXT",
                        help="more options for `trireme launch`, as one word")  # fmt: skip
    parser.add_argument("--bench-options", type=shlex.split, default=[], metavar="TEXT",
                        help="more options for `trireme bench`, as one word")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one run may take (default: 900)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="keep every sample")
    options = parser.parse_args()
    for mode in options.modes:
        if mode not in MODES:
            parser.error(f"--modes {mode}: must be some of {', '.join(MODES)}")
    return options


def settings_of(options):
    counts = [int(count) for count in options.servers or []] or range(1, options.workers + 1)
    return [ALL_REDUCE] + [
        Setting(mode, protocol, count) for mode in options.modes for protocol in options.protocols for count in counts
    ]


def run(options, work, setting, steps, warmup):
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.json"
        command = [str(options.trireme), "launch", "--workers", str(options.workers), *setting.launch_options(),
                   *options.launch_options, "--", "bench", "--model", work.model, "--batch-size", str(work.batch),
                   "--num-batches", str(steps), "--num-warmup-batches", str(warmup), *setting.bench_options(),
                   *options.bench_options, "--record", str(record)]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
        except subprocess.TimeoutExpired:
            raise BenchError(f"not finished in time (--timeout): {shlex.join(command)}") from None
        if done.returncode != 0:
            raise BenchError("\n".join([f"exit code {done.returncode}: {shlex.join(command)}",
                                        *done.stderr.strip().splitlines()[-5:]]))  # fmt: skip
        return json.loads(record.read_text(encoding="utf-8"))


def sample_of(record, work, setting, number):
    results = record["results"]
    servers = results["servers"]
    return {
        "round": number,
        "work": str(work),
        **vars(setting),
        "images_per_second": results["images_per_second"],
        "in_bytes": [server["bytes_received_per_step"] for server in servers],
        "out_bytes": [server["bytes_sent_per_step"] for server in servers],
        "mean_staleness": [server["mean_staleness"] for server in servers],
    }


def summarize(samples, settings):
    def column(setting, key):
        return [sample[key] for sample in samples if Setting(*(sample[k] for k in vars(setting))) == setting]

    base = column(ALL_REDUCE, "images_per_second")
    rows = []
    for setting in settings:
        speeds = column(setting, "images_per_second")
        in_bytes = column(setting, "in_bytes")[-1]
        rows.append({
            **vars(setting),
            "images_per_second": spread(speeds),
            "ratio_to_all_reduce": spread([a / b for a, b in zip(speeds, base)]),
            "largest_in_bytes": max(in_bytes, default=0),
            "mean_staleness": max(column(setting, "mean_staleness")[-1], default=0),
        })  # fmt: skip
    return rows


def to_text(title, rows):
    lines = [title, "mode        protocol  ps  images/s      min      max  MB per server and step  staleness  "
             "/ all-reduce, per round"]  # fmt: skip
    for row in rows:
        speed = row["images_per_second"]
        lines.append(f"{row['mode']:<10}  {row['protocol']:<8}  {row['servers']:2}  {speed['median']:8.2f} "
                     f"{speed['min']:8.2f} {speed['max']:8.2f}  {row['largest_in_bytes'] / 1e6:22.1f}  "
                     f"{row['mean_staleness']:9.2f}  {ratio_text(row['ratio_to_all_reduce'])}")  # fmt: skip
    synchronous = [row for row in rows if row["mode"] == "sync"]
    if synchronous:
        best = max(synchronous, key=lambda row: row["ratio_to_all_reduce"]["median"])
        lines.append(f"best synchronous: {best['servers']} ps over {best['protocol']}: "
                     f"{best['ratio_to_all_reduce']['median']:.2f} of all-reduce")  # fmt: skip
    return "\n".join(lines)


def compare_work(options, work, content):
    settings = settings_of(options)
    say(f"{work}: preparing")
    run(options, work, ALL_REDUCE, 1, 0)  # kernels are timed and kept now
    for number in range(options.rounds):
        first = number % len(settings)
        for setting in settings[first:] + settings[:first]:
            record = run(options, work, setting, options.steps, options.warmup)
            sample = sample_of(record, work, setting, number + 1)
            say(f"{work}: round {number + 1} of {options.rounds}: {setting}: "
                f"{sample['images_per_second']:.2f} images/s")  # fmt: skip
            content["samples"].append(sample)
            content["machine"].update(record["machine"])
            content["build"] = record["build"]
            if options.json:
                replace_file(options.json, json.dumps(content, indent=1) + "\n")
    samples = [sample for sample in content["samples"] if sample["work"] == str(work)]
    title = (f"{work.model}, batch {work.batch} per worker, {options.workers} workers, {options.steps} steps after "
             f"{options.warmup}, {options.rounds} rounds")  # fmt: skip
    print(to_text(title, summarize(samples, settings)), flush=True)


def main():
    options = parse_arguments()
    content = {
        "schema": "trireme.servers/1",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": sys.argv,
        "machine": {"host": platform.node(), "kernel": platform.release(), "load_before": os.getloadavg()},
        "samples": [],
    }
    try:
        for work in options.work or [Work("resnet50", 16, "train")]:
            compare_work(options, work, content)
    except (BenchError, OSError) as error:
        sys.exit(f"servers: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

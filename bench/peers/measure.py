"""What the scripts of all frameworks share: the options of `trireme bench` that they take, timing, and the record of the
run (schema trireme.run/1), which goes to --record, or else is all that goes to standard output.

Import it before the framework: with OMP_PROC_BIND, loading OpenMP binds the thread to one core, and the processors can
no longer be counted; and what frameworks print while they are loaded has to go elsewhere already.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import re
import statistics
import sys
import time

from networks import NETWORKS, find_network

STARTED = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
USABLE_PROCESSORS = sorted(os.sched_getaffinity(0))
WARMUP_SHARE = 0.25  # of --max-seconds, at most: as in `trireme bench`
OPTIMIZER = {"init_learning_rate": 0.001, "momentum": 0.9, "weight_decay": 4e-5}
PRECISIONS = ("fp32", "bf16")

_record_stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def record_stream():
    """Where the record goes, which is not where print() goes: that is with the error messages."""
    return _record_stream


def make_parser(description, device="cpu", precisions=PRECISIONS):
    """The names and meanings are those of `trireme bench`."""

    def number(text, least):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    def positive(text):
        return number(text, 1)

    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=NETWORKS, default="resnet50")
    parser.add_argument("--batch-size", type=positive, default=32, help="of each process (default: 32)")
    parser.add_argument("--num-classes", type=positive, help="(default: the network's own)")
    parser.add_argument("--no-dropout", action="store_true")
    parser.add_argument("--num-batches", type=positive, default=10, help="timed steps (default: 10)")
    parser.add_argument("--num-warmup-batches", type=lambda text: number(text, 0), default=2,
                        help="steps before them (default: 2)")  # fmt: skip
    parser.add_argument("--max-seconds", type=float, help="ends warm-up and timed steps early")
    parser.add_argument("--num-intra-threads", type=positive, default=len(USABLE_PROCESSORS),
                        help="of each process (default: as many as there are processors)")  # fmt: skip
    parser.add_argument("--forward-only", action="store_true")
    parser.add_argument("--precision", choices=precisions, default="fp32")
    parser.add_argument("--device", choices=(device,), default=device)
    parser.add_argument("--record", default="-", help="file for the record (default: standard output)")
    return parser


def option_names():
    """Those that every script takes, without dashes; and the number of processes."""
    actions = make_parser("")._actions
    names = [name[2:] for action in actions for name in action.option_strings if name.startswith("--")]
    return [name for name in names if name not in ("help", "record")] + ["workers"]


def time_steps(step, options, agree=bool):
    """Seconds and losses of the timed steps. The clock of --max-seconds starts with the second step: in the first,
    frameworks trace and compile, which Trireme does before its own. `agree` makes one decision of several processes'
    when time is up."""
    begin = None

    def is_past(share):
        return agree(options.max_seconds is not None and time.perf_counter() - begin >= share * options.max_seconds)

    for number in range(options.num_warmup_batches):
        if number > 0 and is_past(WARMUP_SHARE):
            break
        step()
        begin = begin or time.perf_counter()
    begin = begin or time.perf_counter()
    seconds, losses = [], []
    while len(seconds) < options.num_batches and not (seconds and is_past(1)):
        start = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - start)
        losses.append(loss)
        check_losses([loss])
    return seconds, losses


def check_losses(losses):
    for loss in losses:
        if not math.isfinite(loss):
            sys.exit(f"the loss is {loss}: such a run says nothing about speed")


def peak_rss_bytes():
    """The same figure as Trireme reports; getrusage() would count the peak of the parent process as well."""
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(r"^VmHWM:\s*(\d+) kB$", status.read(), re.MULTILINE).group(1)) * 1024


def loaded_library(names, otherwise):
    """The first of the names that occurs in the file name of a library of this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        libraries = {line.rsplit("/", 1)[-1].strip() for line in maps if "/" in line}
    return next((name for name in names if any(f"lib{name}" in library for library in libraries)), otherwise)


def rank_part(seconds, losses):
    """What one process has to say in the record."""
    return {"seconds": seconds, "losses": losses, "peak_rss_bytes": peak_rss_bytes(), "cores": USABLE_PROCESSORS}


def print_record(options, build, ranks, machine=None):
    """`build` is what only the framework knows: its name, version and settings; `ranks` the part of each process. Speed
    is that of the first process: all take part in every step. What was not measured is null; `machine` is what only the
    framework knows of it, and the rest is added by whoever has started this."""
    network = find_network(options.model, options.num_classes)
    samples = ranks[0]["seconds"]
    mean = statistics.mean(samples)
    speed = len(ranks) * options.batch_size / mean
    record = {
        "schema": "trireme.run/1",
        "command": sys.orig_argv,
        "started": STARTED,
        "build": {**build, "python": platform.python_version(),
                  "allocator": loaded_library(("tcmalloc", "jemalloc"), "glibc")},
        "config": {
            "model": options.model,
            "batch_size": options.batch_size,
            "num_classes": network.classes,
            "num_batches": options.num_batches,
            "num_warmup_batches": options.num_warmup_batches,
            "repeats": 1,
            "max_seconds": options.max_seconds,
            "forward_only": options.forward_only,
            "aux_head": False,
            "no_dropout": options.no_dropout,
            "label_smoothing": 0.0,
            "optimizer": "momentum",
            **OPTIMIZER,
            "device": options.device,
            "precision": options.precision,
            "num_intra_threads": options.num_intra_threads,
            "data_name": "synthetic",
            "workers": len(ranks),
            "parameters": network.parameters,
        },
        "cluster": [{"role": "worker", "index": index, "host": platform.node(), "cores": rank["cores"]}
                    for index, rank in enumerate(ranks)],
        "steps": [[rank["seconds"]] for rank in ranks],
        "losses": [[rank["losses"]] for rank in ranks],
        "results": {
            "images_per_second": speed,
            "images_per_second_per_worker": speed / len(ranks),
            "images_per_second_per_repeat": [speed],
            "step_seconds": {
                "mean": mean,
                "median": statistics.median(samples),
                "p95": percentile(samples, 0.95),
                "stderr": statistics.stdev(samples) / math.sqrt(len(samples)) if len(samples) > 1 else 0.0,
            },
            "jitter": jitter([options.batch_size / second for second in samples]),
            "loss": statistics.mean(rank["losses"][-1] for rank in ranks),
            "breakdown": [],
            "overlap": None,
            "scaling_efficiency": None,
            "io_overhead_percent": None,
            "peak_rss_bytes": max(rank["peak_rss_bytes"] for rank in ranks),
            "flops_per_second": None,
            "utilisation": None,
        },
    }  # fmt: skip
    if machine:
        record["machine"] = machine
    with contextlib.nullcontext(_record_stream) if options.record == "-" else open(options.record, "w", encoding="utf-8") as file:
        json.dump(record, file)
        file.write("\n")
        file.flush()


def percentile(samples, share):
    """Interpolated between the nearest samples, as Trireme does it."""
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def jitter(samples):
    middle = statistics.median(samples)
    return 1.4826 * statistics.median(abs(sample - middle) for sample in samples)

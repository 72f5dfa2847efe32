"""What the scripts of all frameworks share: options, timing, memory and the line of JSON at the end.

Import it before the framework: with OMP_PROC_BIND, loading OpenMP binds the thread to one core, and the processors can
no longer be counted.
"""

import argparse
import json
import math
import os
import re
import statistics
import sys
import time

from networks import NETWORKS

USABLE_PROCESSORS = len(os.sched_getaffinity(0))


def make_parser(description):
    def number(text, least):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    def positive(text):
        return number(text, 1)

    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=NETWORKS, default="resnet50")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--steps", type=positive, default=10, help="timed steps (default: 10)")
    parser.add_argument("--warmup", type=lambda text: number(text, 0), default=2, help="steps before them (default: 2)")
    parser.add_argument("--threads", type=positive, default=USABLE_PROCESSORS, help="(default: all usable)")
    parser.add_argument("--mode", choices=("train", "forward"), default="train")
    return parser


def time_steps(step, options):
    """Seconds of every timed step, and the last loss."""
    for _ in range(options.warmup):
        step()
    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - begin)
    if not math.isfinite(loss):
        sys.exit(f"the loss is {loss}: such a run says nothing about speed")
    return seconds, loss


def peak_rss_bytes():
    """The same figure as Trireme reports; getrusage() would count the peak of the parent process as well."""
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(r"^VmHWM:\s*(\d+) kB$", status.read(), re.MULTILINE).group(1)) * 1024


def loaded_library(names, otherwise):
    """The first of the names that occurs in the file name of a library of this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        libraries = {line.rsplit("/", 1)[-1].strip() for line in maps if "/" in line}
    return next((name for name in names if any(f"lib{name}" in library for library in libraries)), otherwise)


def print_result(options, framework, seconds, loss):
    """`framework` has what only the framework knows: its name, version and settings."""
    print(json.dumps({
        **framework,
        "model": options.model,
        "batch": options.batch_size,
        "mode": options.mode,
        "images_per_second": options.batch_size / statistics.mean(seconds),
        "step_seconds": seconds,
        "loss": loss,
        "peak_rss_bytes": peak_rss_bytes(),
        "allocator": loaded_library(("tcmalloc", "jemalloc"), "glibc"),
    }))  # fmt: skip

#!/usr/bin/python3
"""Runs the same work under Trireme and its peers in several configurations, interleaved, and prints the ratios.

Every round runs every contestant once, each in a process of its own, and every round begins with another contestant.
Ratios are taken within a round, so that what changes slowly on the machine cancels. See README.md.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shlex
import sys

import contestants
import summary
from contestants import CompareError, Protocol, Work

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV_PYTHON = ROOT / ".venv-peers/bin/python"  # made by tools/setup --peers
MODES = ("train", "forward")
TABLE = [  # --all
    Work("resnet50", 16, "train"),
    Work("resnet50", 32, "train"),
    Work("inception3", 8, "train"),
    Work("vgg11", 8, "train"),
    Work("alexnet_owt", 64, "train"),
    Work("googlenet", 16, "train"),
    Work("resnet152", 8, "train"),
    Work("overfeat", 16, "train"),
    Work("inception4", 4, "train"),
    Work("vgg16", 4, "train"),
    Work("resnet50", 16, "forward"),
    Work("vgg11", 8, "forward"),
    Work("alexnet_owt", 64, "forward"),
    Work("inception3", 8, "forward"),
]
PLAIN_BLAS = ("PyTorch uses the plain libblas here, which multiplies matrices on one thread without vectors: its fully "
              "connected layers are not at their best. Install OpenBLAS (libopenblas0-pthread).")  # fmt: skip


def usable_cores():
    """Cores, not hardware threads: the same count as Trireme's default."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text(encoding="ascii") if siblings.exists() else cpu)
    return len(cores)


def parse_work(text):
    model, _, rest = text.partition(":")
    batch, _, mode = rest.partition(":")
    mode = mode or "train"
    if not model or not batch.isdecimal() or int(batch) < 1 or mode not in MODES:
        raise argparse.ArgumentTypeError(f"'{text}' is not MODEL:BATCH or MODEL:BATCH:train|forward")
    return Work(model, int(batch), mode)


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", nargs="*", type=parse_work, metavar="MODEL:BATCH[:train|forward]",
                        help="what to run (default: resnet50:16)")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="the whole table of docs/performance.md; takes hours")
    parser.add_argument("--rounds", type=positive, default=3, help="runs of each contestant (default: 3)")
    parser.add_argument("--seconds", type=float, default=12,
                        help="length of a run of PyTorch that --steps is chosen for (default: 12)")  # fmt: skip
    parser.add_argument("--steps", type=positive, help="timed steps per run (default: as many as fill --seconds)")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them (default: 3)")
    parser.add_argument("--threads", type=positive, default=usable_cores(), help="(default: one per usable core)")
    parser.add_argument("--trireme", type=pathlib.Path, default=ROOT / "build/release/trireme", metavar="PROGRAM",
                        help="(default: build/release/trireme)")  # fmt: skip
    parser.add_argument("--trireme-options", type=shlex.split, default=[], metavar="TEXT",
                        help="more options for `trireme bench`, as one word")  # fmt: skip
    parser.add_argument("--python", action="append", metavar="PROGRAM",
                        help="interpreter with PyTorch or TensorFlow; may be given again for other versions "
                             "(default: .venv-peers/bin/python if there is one, else /usr/bin/python3)")  # fmt: skip
    parser.add_argument("--no-tcmalloc", action="store_true", help="leave out what needs tcmalloc")
    parser.add_argument("--only", action="append", metavar="TEXT",
                        help="of the peers, only configurations with this in their name; may be given again")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one run may take (default: 900)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="keep every sample")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write a table, one row per work")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every contestant's command")
    options = parser.parse_args()
    if options.all and options.work:
        parser.error("--all and a list of work exclude each other")
    options.work = TABLE if options.all else options.work or [Work("resnet50", 16, "train")]
    options.python = options.python or [str(VENV_PYTHON) if VENV_PYTHON.exists() else "/usr/bin/python3"]
    if options.warmup < 0:
        parser.error("--warmup is negative")
    return options


def say(text):
    print(text, file=sys.stderr, flush=True)


def gather(options):
    trireme = contestants.make_trireme(options.trireme, options.trireme_options)
    tcmalloc = None if options.no_tcmalloc else contestants.find_tcmalloc()
    peers = [peer for python in options.python for peer in contestants.make_peers(python, tcmalloc)]
    chosen = [peer for peer in peers if not options.only or any(text in peer.name for text in options.only)]
    if not chosen:
        raise CompareError(f"--only {' '.join(options.only)}: no such configuration; there are: "
                           + ", ".join(peer.name for peer in peers))  # fmt: skip
    return [trireme, *chosen]


def choose_steps(options, work, peers):
    """As many as fill the time that was asked for in a configuration that is near PyTorch's best."""
    if options.steps:
        return options.steps
    tuned = [peer for peer in peers if not peer.as_installed]
    probe = next((peer for peer in tuned if "channels_last + tcmalloc" in peer.name), (tuned or peers)[0])
    say(f"{work}: choosing the number of steps")
    sample = contestants.run(probe, work, Protocol(2, 1, options.threads, options.timeout))
    step_seconds = min(sample["step_seconds"])
    return max(3, min(1000, round(options.seconds / step_seconds) - options.warmup))


def run_rounds(options, work, field, protocol, keep):
    """Returns the peers that failed, with the reason: the others are worth their figures all the same."""
    left_out = {}
    for number in range(options.rounds):
        first = number % len(field)
        for contestant in field[first:] + field[:first]:
            if contestant.name in left_out:
                continue
            try:
                sample = contestants.run(contestant, work, protocol)
            except CompareError as error:
                if contestant is field[0]:
                    raise
                say(f"compare: {error}")
                left_out[contestant.name] = str(error).splitlines()[-1]
                continue
            say(f"{work}: round {number + 1} of {options.rounds}: {contestant.name}: "
                f"{sample['images_per_second']:.2f} images/s")  # fmt: skip
            keep({"round": number + 1, **sample})
    return left_out


class Report:
    """What is kept in the files of --json and --markdown. They are written after every run and every work: nothing is
    lost when a later one fails."""

    def __init__(self, json_path, markdown_path):
        self.json_path = json_path
        self.markdown_path = markdown_path
        self.content = {
            "schema": "trireme.peers/2",
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": sys.argv,
            "machine": {"host": platform.node(), "kernel": platform.release(), "load_before": os.getloadavg()},
            "comparisons": [],
        }

    def begin(self, work, protocol):
        self.content["comparisons"].append({**vars(work), **vars(protocol), "samples": []})
        return self.content["comparisons"][-1]

    def write(self):
        if self.json_path is not None:
            replace_file(self.json_path, json.dumps(self.content, indent=1) + "\n")
        finished = [comparison for comparison in self.content["comparisons"] if "summary" in comparison]
        if self.markdown_path is not None and finished:
            replace_file(self.markdown_path, summary.to_markdown(finished))


def replace_file(path, text):
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def compare(options, work, everybody, report):
    field = [contestant for contestant in everybody if work.mode in contestant.modes]
    if len(field) < 2:
        raise CompareError(f"{work}: no configuration of a peer is left to compare with")
    protocol = Protocol(choose_steps(options, work, field[1:]), options.warmup, options.threads, options.timeout)
    if options.verbose:
        for contestant in field:
            say(f"{contestant.name}: {contestants.shell_text(contestant, work, protocol)}")
    comparison = report.begin(work, protocol)

    def keep(sample):
        if "record" in sample:  # the machine, as Trireme sees it
            report.content["machine"].update(sample["record"]["machine"])
        comparison["samples"].append(sample)
        report.write()

    left_out = run_rounds(options, work, field, protocol, keep)
    field = [contestant for contestant in field if contestant.name not in left_out]
    if len(field) < 2:
        raise CompareError(f"{work}: every peer failed")
    comparison["title"] = str(work)
    comparison["settings"] = (f"{protocol.threads} threads, {protocol.steps} steps after {protocol.warmup}, "
                              f"{options.rounds} rounds")  # fmt: skip
    comparison["left_out"] = left_out
    comparison["summary"] = summary.summarize(comparison["samples"], field)
    report.write()
    print(summary.to_text(f"{work}, {comparison['settings']}", comparison["summary"], left_out))
    if any(sample.get("blas") == "blas" for sample in comparison["samples"]):
        print("Warning: " + PLAIN_BLAS)
    print(flush=True)


def main():
    options = parse_arguments()
    report = Report(options.json, options.markdown)
    failures = 0
    try:
        everybody = gather(options)
        if os.getloadavg()[0] > 0.5:
            say(f"Warning: load average {os.getloadavg()[0]:.1f}: something else is running, and figures will be noisy")
        for work in options.work:
            try:
                compare(options, work, everybody, report)
            except CompareError as error:  # the other work is worth its figures all the same
                say(f"compare: {error}")
                failures += 1
    except (CompareError, OSError) as error:
        sys.exit(f"compare: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""The MNIST study: `trireme train` in one process, by all-reduce and through a parameter server, to accuracy.

Every mode trains the network of the CSCS report once. Its record stays in a folder, and a mode whose record is there,
of the same build, is not run again: a study that was interrupted goes on. The table and the plots are made from the
records.
"""

import argparse
import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys

from common import ROOT, BenchError, positive, replace_file, say
from line_plot import Curve, to_svg

GLOBAL_BATCH = 64
LEARNING_RATE = 0.02  # of a global batch
SMOOTHING = 0.1  # epochs that a point of the plots is the mean of


@dataclasses.dataclass(frozen=True)
class Mode:
    name: str
    title: str
    workers: int = 1
    servers: int = 0
    is_async: bool = False

    def launch_options(self):
        servers = ["--ps", str(self.servers)] if self.servers else []
        return ["--workers", str(self.workers), "--oversubscribe", *servers]

    def batch(self):
        return GLOBAL_BATCH // self.workers

    def learning_rate(self):
        """Asynchronously every worker's batch is an update of its own, so there are as many times more of them: a batch
        counts as much as in the other modes with a rate that is as many times smaller (linear scaling)."""
        return LEARNING_RATE / self.workers if self.is_async else LEARNING_RATE


MODES = [
    Mode("one", "one process"),
    *[Mode(f"all-reduce-{n}", f"{n} workers, all-reduce", n) for n in (2, 4)],
    *[Mode(f"server-{n}", f"{n} workers, a server", n, 1) for n in (2, 4)],
    *[Mode(f"async-{n}", f"{n} workers, a server, async", n, 1, True) for n in (2, 4)],
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, metavar="DIR", help="folder with MNIST, or any data set of digits")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("mnist-study"), metavar="DIR",
                        help="folder for the records (default: mnist-study)")  # fmt: skip
    parser.add_argument("--figures", type=pathlib.Path, default=ROOT / "docs/figures", metavar="DIR",
                        help="folder for the plots (default: docs/figures)")  # fmt: skip
    parser.add_argument("--table", type=pathlib.Path, metavar="FILE", help="write the table (markdown) there too")
    parser.add_argument("--modes", metavar="NAME,...", default=",".join(mode.name for mode in MODES),
                        help="(default: %(default)s)")  # fmt: skip
    parser.add_argument("--epochs", type=positive, default=3, help="(default: 3)")
    parser.add_argument("--quick", action="store_true",
                        help="without timing kernels, and with a point of the curves for every other step: to try it "
                             "on little data")  # fmt: skip
    parser.add_argument("--trireme", type=pathlib.Path, default=ROOT / "build/release/trireme", metavar="PROGRAM",
                        help="(default: build/release/trireme)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=1800, help="seconds that one run may take (default: 1800)")
    options = parser.parse_args()
    known = {mode.name: mode for mode in MODES}
    names = options.modes.split(",")
    for name in names:
        if name not in known:
            parser.error(f"--modes {name}: must be some of {', '.join(known)}")
    options.modes = [mode for mode in MODES if mode.name in names]
    return options


def train_command(options, mode):
    return ["train", "--model", "mnist", "--data-dir", str(options.data), "--epochs", str(options.epochs),
            "--batch-size", str(mode.batch()), "--init-learning-rate", f"{mode.learning_rate():g}",
            "--learning-rate-schedule", "cosine", "--num-epochs-per-decay", str(options.epochs),
            "--weight-decay", "1e-4", *(["--async"] if mode.is_async else []),
            *(["--autotune", "off", "--display-every", "2"] if options.quick else [])]  # fmt: skip


def build_text(build):
    """What `trireme --version` says of the build in a record."""
    return f"trireme {build['version']} (commit {build['git']}, {build['compiler']}, {build['build_type']})"


def read_build(trireme):
    """Of the program that would run now."""
    try:
        return subprocess.run([str(trireme), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except subprocess.CalledProcessError as error:
        raise BenchError(f"{trireme} does not say what it is: {error.stderr.strip()}") from None


def read_finished(path, command, build):
    """The record of a run of this command by this build that has come to its end; None: there is none."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    # The program and `--record FILE` may lie elsewhere by now.
    is_ours = record["command"][1:-2] == command and build_text(record["build"]) == build
    return record if is_ours and record.get("end") == "done" else None


def run(options, mode, train, path):
    launch = [] if mode.workers == 1 else ["launch", *mode.launch_options(), "--"]
    command = [str(options.trireme), *launch, *train, "--record", str(path)]
    say(shlex.join(command))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        raise BenchError(f"not finished in time (--timeout): {shlex.join(command)}") from None
    if done.returncode != 0:
        raise BenchError("\n".join([f"exit code {done.returncode}: {shlex.join(command)}",
                                    *done.stderr.strip().splitlines()[-5:]]))  # fmt: skip


def record_of(options, mode, build):
    path = options.out.resolve() / f"{mode.name}.json"
    train = train_command(options, mode)
    record = read_finished(path, train, build)
    if record is not None:
        say(f"{mode.title}: done before, {path}")
        return record
    run(options, mode, train, path)
    record = read_finished(path, train, build)
    if record is None:
        raise BenchError(f"{path}: not the record of a training that has ended")
    say(f"{mode.title}: {100 * record['epochs'][-1]['top1']:.2f} %")
    return record


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def to_markdown(records, epochs):
    """One row per mode; times and speeds are means over the epochs."""
    header = ["", "batch per worker", *[f"top-1 after epoch {n}" if n == 1 else str(n) for n in range(1, epochs + 1)],
              "images/s", "an epoch", "evaluation"]  # fmt: skip
    rows = [header, ["---"] * len(header)]
    for mode, record in records:
        ends = record["epochs"]
        rows.append([
            mode.title,
            str(mode.batch()),
            *[f"{100 * end['top1']:.2f} %" for end in ends],
            f"{mean(end['images_per_second'] for end in ends):,.0f}",
            f"{mean(end['train_seconds'] for end in ends):.1f} s",
            f"{mean(end['evaluation_seconds'] for end in ends):.1f} s",
        ])  # fmt: skip
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def smoothed(curve, key):
    """Each point with the mean loss of those up to SMOOTHING epochs before it; until there are so many, of what there
    is. Points are the means of equally many steps, but for the first one, which is of a single step: it is left out,
    unless there is no other."""
    points = []
    begin = first = min(1, len(curve) - 1)
    for i in range(begin, len(curve)):
        while curve[i]["epoch"] - curve[first]["epoch"] > SMOOTHING:
            first += 1
        points.append((curve[i][key], mean(point["loss"] for point in curve[first : i + 1])))
    return points


def write_plots(records, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, key, label in (("epochs", "epoch", "epochs"), ("time", "seconds", "seconds, evaluation included")):
        curves = [Curve(mode.title, smoothed(record["curve"], key)) for mode, record in records]
        picture = to_svg(f"MNIST: loss against {name}", label, "training loss of the first worker", curves)
        path = folder / f"mnist-loss-{name}.svg"
        replace_file(path, picture)
        say(f"wrote {path}")


def main():
    options = parse_arguments()
    try:
        options.data = options.data.resolve()
        options.out.mkdir(parents=True, exist_ok=True)
        build = read_build(options.trireme)
        records = [(mode, record_of(options, mode, build)) for mode in options.modes]
        table = to_markdown(records, options.epochs)
        print(table, end="", flush=True)
        if options.table:
            replace_file(options.table, table)
        write_plots(records, options.figures)
    except (BenchError, OSError) as error:
        sys.exit(f"mnist: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

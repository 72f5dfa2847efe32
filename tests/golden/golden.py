#!/usr/bin/env python3
"""The losses of short trainings in every mode, as exact numbers: written by one build, compared by the next.

  golden.py write BINARY FILE [--only TEXT] [--steps N]   run every case twice; keep the losses of those that repeat
  golden.py check BINARY FILE [--only TEXT]               run the cases of the file; every loss must be the same

A change that must not change results is checked with a file that the build before it has written. On a machine like the
one that wrote it losses must be equal to the bit; elsewhere kernels and libraries differ, and so may the last digits. The
small file beside this program has cases of the reference backend, for the tests.
"""

import argparse
import itertools
import json
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

NETWORKS = {"mnist": 4, "resnet20": 4, "googlenet": 2}  # with dropout; with batch norm and sums; with branches
SERVED = (("parameter_server", "grpc"), ("parameter_server", "grpc+ucx"), ("parameter_server", "grpc+mpi"),
          ("distributed_replicated", "grpc"))
TIMEOUT = 300


def cases(networks, backend, precisions):
    """Name and command, without binary and record, of every case."""
    for network, precision in itertools.product(networks, precisions):
        bench = ["bench", "--model", network, "--batch-size", str(NETWORKS[network]), "--backend", backend,
                 "--precision", precision, "--num-warmup-batches", "0", "--autotune", "off", "--exact",
                 "--init-learning-rate", "0.01"]

        def case(name, options=(), launch=()):
            command = (["launch", *launch, "--"] if launch else []) + bench + list(options)
            return f"{network} {precision} {backend}: {name}", command

        one = ["--num-intra-threads", "1", "--batch-split", "1"]
        yield case("one process", ["--batch-split", "1"])
        for optimizer in ("sgd", "nesterov", "rmsprop", "adam"):
            yield case(f"one process, {optimizer}", [*one, "--optimizer", optimizer])
        yield case("one process, recompute", [*one, "--recompute", "full"])
        if backend != "reference":
            yield case("one process, batch split", ["--batch-split", "2"])
            yield case("one process, inter-op", ["--num-inter-threads", "2", "--num-intra-threads", "1"])
        for workers in (2, 3):
            launch = ["--workers", str(workers), "--oversubscribe"]
            for protocol in ("grpc", "grpc+ucx", "mpi"):
                yield case(f"{workers} workers, ring, {protocol}", [*one, "--all-reduce", "ring", "--protocol", protocol],
                           launch)
            for algorithm in ("tree", "hierarchical"):
                yield case(f"{workers} workers, {algorithm}", [*one, "--all-reduce", algorithm], launch)
            yield case(f"{workers} workers, no overlap", [*one, "--all-reduce", "ring", "--overlap", "off"], launch)
            yield case(f"{workers} workers, batch norm over all", [*one, "--all-reduce", "ring", "--sync-batch-norm"], launch)
            for servers, (update, protocol) in itertools.product((1, 2), SERVED):
                yield case(f"{workers} workers, {servers} servers, {update}, {protocol}",
                           [*one, "--variable-update", update, "--protocol", protocol], [*launch, "--ps", str(servers)])


def machine():
    """What the bits of a loss may depend on beside the program."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{model}, {' '.join(platform.libc_ver())}"


def flat(values):
    return list(itertools.chain(*itertools.chain(*values)))


def differs(before, after, exact):
    """The first place where two lists of losses are not the same; None: they are."""
    if len(before) != len(after):
        return min(len(before), len(after))
    tolerance = 0 if exact else 1e-4
    return next((i for i, (a, b) in enumerate(zip(before, after)) if not abs(a - b) <= tolerance * abs(a)), None)


def losses(binary, command, steps):
    """Of every rank, step by step; None if the command fails."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "record.json"
        line = [binary, *command, "--num-batches", str(steps), "--record", str(record)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if done.returncode != 0:
            return None, (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        return json.loads(record.read_text())["losses"], []


def write(options):
    kept = {}
    for name, command in cases(options.networks, options.backend, options.precisions):
        if not re.search(options.only, name):
            continue
        first, error = losses(options.binary, command, options.steps)
        second, _ = losses(options.binary, command, options.steps) if first else (None, None)
        state = "kept" if first and first == second else "not reproducible, left out" if first else f"fails: {error}"
        print(f"{name}: {state}", flush=True)
        if first and first == second:
            kept[name] = {"command": command, "losses": first}
    options.file.write_text(json.dumps({"machine": machine(), "steps": options.steps, "cases": kept}, indent=None, separators=(",", ":")) + "\n")


def check(options):
    golden = json.loads(options.file.read_text())
    exact = golden["machine"] == machine()
    print("to the bit" if exact else f"to four digits: written on {golden['machine']}, this is {machine()}", flush=True)
    failed = count = 0
    for name, case in golden["cases"].items():
        if not re.search(options.only, name):
            continue
        count += 1
        now, error = losses(options.binary, case["command"], golden["steps"])
        if now is None:
            print(f"{name}: fails: {error}", flush=True)
            failed += 1
            continue
        before, after = flat(case["losses"]), flat(now)
        at = differs(before, after, exact)
        if at is not None:
            print(f"{name}: loss {at} was {before[at : at + 1]} and is {after[at : at + 1]}", flush=True)
            failed += 1
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed or not count else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("binary")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name matches this regular expression")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--backend", default="onednn")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    options = parser.parse_args()
    return check(options) if options.action == "check" else write(options)


if __name__ == "__main__":
    sys.exit(main())

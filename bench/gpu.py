#!/usr/bin/env python3
"""Trireme beside PyTorch on a GPU: training steps of the table in docs/gpu.md, as markdown.

Every line of the table is measured in one go, Trireme before and after each of PyTorch's ways, so that a change of the
GPU's clocks would show. Needs torch; run it on the machine with the GPU.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Row:
    model: str
    batch: int
    precision: str
    ways: tuple[str, ...]  # of PyTorch
    goal: int  # images/s

    def __str__(self):
        return f"{self.model} b{self.batch} {self.precision}"


TABLE = [
    Row("resnet50", 64, "bf16", ("eager", "graph", "compile"), 6000),
    Row("resnet50", 256, "bf16", ("eager", "compile"), 7200),
    Row("resnet152", 64, "bf16", ("eager", "graph"), 2200),
    Row("inception3", 64, "bf16", ("eager", "graph", "compile"), 3900),
    Row("vgg11", 64, "bf16", ("eager", "graph"), 5200),
    Row("alexnet_owt", 256, "bf16", ("eager", "graph"), 42000),
    Row("googlenet", 64, "bf16", ("eager", "graph"), 7500),
    Row("resnet50", 256, "fp16", ("eager",), 0),
    Row("resnet50", 256, "tf32", ("eager",), 2600),
    Row("resnet50", 256, "fp32", ("eager",), 1150),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trireme", type=pathlib.Path, default=ROOT / "build/release/trireme", metavar="PROGRAM")
    parser.add_argument("--only", help="rows whose name has this in it, such as 'resnet50 b64'")
    parser.add_argument("--ways", default="eager,graph,compile", help="of PyTorch; (default: eager,graph,compile)")
    parser.add_argument("--steps", type=int, default=40, help="timed steps (default: 40)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="all figures")
    return parser.parse_args()


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=400, check=False)
    if done.returncode != 0:
        print(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return done.stdout


def run_trireme(row, options):
    text = run([options.trireme, "bench", "--device", "cuda", "--model", row.model, "--batch-size", row.batch,
                "--precision", row.precision, "--num-batches", options.steps, "--num-warmup-batches", 15,
                "--record", "-"])  # fmt: skip
    if text is None:
        return None
    record = json.loads(text)
    median = statistics.median(seconds for repeat in record["steps"][0] for seconds in repeat)
    return {"images_per_second": row.batch / median, "bytes": record["machine"]["gpu"]["training_bytes"],
            "record": record}  # fmt: skip


def run_pytorch(row, way, options):
    text = run([sys.executable, ROOT / "bench/peers/pytorch_gpu.py", "--model", row.model, "--batch-size", row.batch,
                "--precision", row.precision, "--way", way, "--steps", options.steps])  # fmt: skip
    if text is None:
        return None
    result = json.loads(text.splitlines()[-1])
    return {"images_per_second": result["images_per_second"], "bytes": result["peak_bytes"], "record": result}


def measure(row, options):
    ours = [run_trireme(row, options)]
    theirs = {}
    for way in row.ways:
        if way not in options.ways.split(","):
            continue
        theirs[way] = run_pytorch(row, way, options)
        ours.append(run_trireme(row, options))
    return {"row": dataclasses.asdict(row), "trireme": ours, "pytorch": theirs}


def number(result):
    return f"{result['images_per_second']:,.0f}" if result else "–"


def gib(result):
    return f"{result['bytes'] / 2**30:.1f}" if result else "–"


def line(row, result):
    ours = [one for one in result["trireme"] if one]
    if not ours:
        return f"| {row} | failed |"
    middle = sorted(ours, key=lambda one: one["images_per_second"])[len(ours) // 2]
    speeds = [one["images_per_second"] for one in ours]
    theirs = [one for one in result["pytorch"].values() if one]
    best = max((one["images_per_second"] for one in theirs), default=None)
    ratio = f"{middle['images_per_second'] / best:.2f}" if best else "–"
    eager = result["pytorch"].get("eager")
    return (f"| {row} | {' | '.join(number(result['pytorch'].get(way)) for way in ('eager', 'graph', 'compile'))} | "
            f"**{number(middle)}** ({min(speeds):,.0f}–{max(speeds):,.0f}) | {ratio} | {f'{row.goal:,}' if row.goal else '–'} | "
            f"{gib(middle)} / {gib(eager)} |")  # fmt: skip


def main():
    options = parse_arguments()
    rows = [row for row in TABLE if not options.only or options.only in str(row)]
    print("| training | PyTorch eager | CUDA graph | compiled | Trireme (range) | to PyTorch's best | goal | GiB, PyTorch's |")
    print("|---|---|---|---|---|---|---|---|")
    results = []
    for row in rows:
        results.append(measure(row, options))
        print(line(row, results[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

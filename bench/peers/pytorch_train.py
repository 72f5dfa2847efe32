#!/usr/bin/python3
"""Trains a network under PyTorch on synthetic data, or runs it forward, and prints one line of JSON with its speed.

Network, batch, threads, data type and optimizer are those of `trireme bench`, and so is the protocol: one batch made
once, warm-up steps, then timed steps that end when the loss is known. Nothing but torch is needed.
"""

import argparse
import json
import math
import os
import re
import statistics
import sys
import time

# Counted before torch is loaded: with OMP_PROC_BIND, loading OpenMP binds this thread to one core.
USABLE_PROCESSORS = len(os.sched_getaffinity(0))

import torch  # noqa: E402
from torch import nn  # noqa: E402

from networks import NETWORKS, fold_batch_norm, make_network  # noqa: E402

LAYOUTS = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}


def parse_arguments():
    def number(text, least):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    def positive(text):
        return number(text, 1)

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=NETWORKS, default="resnet50")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--steps", type=positive, default=10, help="timed steps (default: 10)")
    parser.add_argument("--warmup", type=lambda text: number(text, 0), default=2, help="steps before them (default: 2)")
    # torch's own default is 1 in some builds.
    parser.add_argument("--threads", type=positive, default=USABLE_PROCESSORS, help="(default: all usable)")
    parser.add_argument("--mode", choices=("train", "forward"), default="train")
    parser.add_argument("--layout", choices=LAYOUTS, default="nchw")
    parser.add_argument("--jit", action="store_true", help="torch.jit.optimize_for_inference; forward only")
    parser.add_argument("--compile", action="store_true", help="torch.compile, where torch has it")
    options = parser.parse_args()
    if options.jit and options.mode != "forward":
        parser.error("--jit is for --mode forward")
    if options.compile and options.jit:
        parser.error("--compile and --jit exclude each other")
    if options.compile and not hasattr(torch, "compile"):
        parser.error(f"--compile: PyTorch {torch.__version__} has no torch.compile; 2.0 is the first that has")
    return options


def make_optimizer(model):
    settings = {"lr": 0.001, "momentum": 0.9, "weight_decay": 4e-5}
    try:
        return torch.optim.SGD(model.parameters(), fused=True, **settings)
    except (TypeError, RuntimeError):  # versions without, and versions that fuse on GPUs only
        return torch.optim.SGD(model.parameters(), **settings)


def make_training_step(model, images, labels, options):
    optimizer = make_optimizer(model)
    criterion = nn.CrossEntropyLoss()
    if options.compile:
        model = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def make_forward_step(model, images, labels, options):
    criterion = nn.CrossEntropyLoss()
    if options.jit:
        with torch.no_grad():
            model = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, images)))
    if options.compile:
        import torch._inductor.config as inductor

        inductor.freezing = True  # weights become constants, stored in the layout that the kernels want
        model = torch.compile(model)

    def step():
        with torch.inference_mode():
            return criterion(model(images), labels).item()

    return step


def make_step(options):
    network = NETWORKS[options.model]
    model = make_network(options.model)
    if options.mode == "forward":
        model.eval()
        fold_batch_norm(model)
    model = model.to(memory_format=LAYOUTS[options.layout])
    images = torch.randn(options.batch_size, *network.image_shape).to(memory_format=LAYOUTS[options.layout])
    labels = torch.randint(network.classes, (options.batch_size,))
    make = make_training_step if options.mode == "train" else make_forward_step
    return make(model, images, labels, options)


def time_steps(step, options):
    for _ in range(options.warmup):
        step()
    seconds = []
    for _ in range(options.steps):
        begin = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - begin)
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


def blas_library():
    """What multiplies matrices in fully connected layers. "blas" is the plain libblas: one thread, not vectorised."""
    if torch.backends.mkl.is_available():
        return "mkl"
    return loaded_library(("openblas", "blis", "mkl", "atlas", "blas"), "unknown")


def main():
    options = parse_arguments()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    seconds, loss = time_steps(make_step(options), options)
    if not math.isfinite(loss):
        sys.exit(f"the loss is {loss}: such a run says nothing about speed")
    capability = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    result = {
        "framework": "pytorch",
        "version": torch.__version__,
        "model": options.model,
        "batch": options.batch_size,
        "mode": options.mode,
        "layout": options.layout,
        "jit": options.jit,
        "compile": options.compile,
        "threads": torch.get_num_threads(),
        "images_per_second": options.batch_size / statistics.mean(seconds),
        "step_seconds": seconds,
        "loss": loss,
        "peak_rss_bytes": peak_rss_bytes(),
        "allocator": loaded_library(("tcmalloc", "jemalloc"), "glibc"),
        "blas": blas_library(),
        "cpu_capability": capability.group(1) if capability else "unknown",
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

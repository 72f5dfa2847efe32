#!/usr/bin/env python3
"""Trains a network under PyTorch on a GPU, on synthetic data, and prints one line of JSON with its speed.

The peer of `trireme bench --device cuda`: the same network and optimizer, one batch made once and left on the GPU,
channels last, fp32 weights; with bf16 and fp16 the network runs under autocast, with fp16 the loss is scaled (eager only). Three ways: eager, the step captured as one CUDA
graph, and torch.compile with reduce-overhead.
"""

import argparse
import json
import statistics

import torch
from torch import nn

from networks import NETWORKS
from pytorch_networks import make_network

WAYS = ("eager", "graph", "compile")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=NETWORKS, default="resnet50")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="bf16")
    parser.add_argument("--way", choices=WAYS, default="eager")
    parser.add_argument("--steps", type=int, default=40, help="timed steps (default: 40)")
    parser.add_argument("--warmup", type=int, default=15, help="steps before them (default: 15)")
    return parser.parse_args()


def make_step(options):
    network = NETWORKS[options.model]
    model = make_network(options.model).cuda().to(memory_format=torch.channels_last)
    images = torch.randn(options.batch_size, *network.image_shape, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(network.classes, (options.batch_size,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=4e-5, fused=True)
    criterion = nn.CrossEntropyLoss()
    forward = torch.compile(model, mode="reduce-overhead") if options.way == "compile" else model

    narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
    scaler = torch.amp.GradScaler("cuda", enabled=options.precision == "fp16")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", narrow, enabled=narrow is not None, cache_enabled=False):
            loss = criterion(forward(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    if options.way != "graph":
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def time_steps(step, options):
    for _ in range(options.warmup):
        step()
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(options.steps + 1)]
    events[0].record()
    for event in events[1:]:
        loss = step()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / 1e3 for a, b in zip(events, events[1:])], float(loss)


def main():
    options = parse_arguments()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    seconds, loss = time_steps(make_step(options), options)
    median = statistics.median(seconds)
    print(json.dumps({"framework": "pytorch", "version": torch.__version__, "gpu": torch.cuda.get_device_name(),
                      "model": options.model, "batch": options.batch_size, "precision": options.precision,
                      "way": options.way, "images_per_second": options.batch_size / median,
                      "step_seconds": median, "loss": loss,
                      "peak_bytes": torch.cuda.max_memory_allocated()}))  # fmt: skip


if __name__ == "__main__":
    main()

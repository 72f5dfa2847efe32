#!/usr/bin/python3
"""Trains a network under PyTorch on a GPU, on synthetic data, or runs it forward, and prints the record of the run.

The peer of `trireme bench --device cuda`: pytorch_train.py for GPUs. One batch stays on the GPU; channels last, fp32
weights; with bf16 and fp16 the network runs under autocast, with fp16 the loss is scaled. Three ways: eager, a step
captured as one CUDA graph, and torch.compile with reduce-overhead. Steps are timed by the GPU, without waiting for
each loss.
"""

import sys

import measure  # before torch: see there

import torch
from torch import nn

from networks import find_network
from pytorch_networks import fold_batch_norm, make_network
from pytorch_train import make_optimizer

WAYS = ("eager", "graph", "compile")
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
RUN_AHEAD = 2  # steps that are launched before the GPU has ended the one before them


def parse_arguments():
    parser = measure.make_parser(__doc__.splitlines()[0], "cuda", PRECISIONS)
    parser.add_argument("--way", choices=WAYS, default="eager")
    options = parser.parse_args()
    if options.way == "graph" and options.precision == "fp16" and not options.forward_only:
        parser.error("--way graph is not for fp16: whether an update is skipped is decided outside of the GPU")
    return options


def autocast(options):
    narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
    return torch.autocast("cuda", narrow, enabled=narrow is not None, cache_enabled=False)


def make_training_step(model, images, labels, options):
    optimizer = make_optimizer(model)
    criterion = nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler("cuda", enabled=options.precision == "fp16")
    if options.way == "compile":
        model = torch.compile(model, mode="reduce-overhead")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast(options):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


def make_forward_step(model, images, labels, options):
    criterion = nn.CrossEntropyLoss()
    model.eval()
    fold_batch_norm(model)
    model = model.to(memory_format=torch.channels_last)
    if options.way == "compile":
        model = torch.compile(model, mode="reduce-overhead")

    def step():
        with torch.inference_mode(), autocast(options):
            return criterion(model(images), labels)

    return step


def capture(step):
    """The step as a CUDA graph, after steps in which libraries choose their kernels."""
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
        return loss.clone()

    return replay


def make_step(options):
    network = find_network(options.model, options.num_classes)
    model = make_network(options.model, options.num_classes, not options.no_dropout)
    model = model.cuda().to(memory_format=torch.channels_last)
    images = torch.randn(options.batch_size, *network.image_shape, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(network.classes, (options.batch_size,), device="cuda")
    make = make_forward_step if options.forward_only else make_training_step
    step = make(model, images, labels, options)
    return capture(step) if options.way == "graph" else step


def timestamp():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def time_steps(step, options):
    """As that of measure.py, from the end of one step to the end of the next."""
    ends, losses = [timestamp()], []

    def run():
        losses.append(step())
        ends.append(timestamp())
        if len(ends) > RUN_AHEAD:
            ends[-1 - RUN_AHEAD].synchronize()
        return 0.0  # it is read after the last step

    count = len(measure.time_steps(run, options)[0])
    torch.cuda.synchronize()
    seconds = [begin.elapsed_time(end) / 1e3 for begin, end in zip(ends[-count - 1 : -1], ends[-count:])]
    losses = [loss.item() for loss in losses[-count:]]
    measure.check_losses(losses)
    return seconds, losses


def build_part(options):
    return {
        "framework": "pytorch",
        "version": torch.__version__,
        "layout": "channels_last",
        "way": options.way,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "warnings": [],
    }


def machine_part():
    """Names are those of Trireme's records; `trireme compare` adds the rest of the machine."""
    return {"gpu": {"device": f"cuda:0 ({torch.cuda.get_device_name()})", "name": torch.cuda.get_device_name(),
                    "training_bytes": torch.cuda.max_memory_allocated()}}  # fmt: skip


def main():
    options = parse_arguments()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here")
    torch.manual_seed(1)
    torch.set_num_threads(options.num_intra_threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    seconds, losses = time_steps(make_step(options), options)
    measure.print_record(options, build_part(options), [measure.rank_part(seconds, losses)], machine_part())


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Trains a network under PyTorch on synthetic data, or runs it forward, and prints one line of JSON with its speed.

Network, batch, threads, data type and optimizer are those of `trireme bench`, and so is the protocol: one batch made
once, warm-up steps, then timed steps that end when the loss is known. Nothing but torch is needed.
"""

import re

import measure  # before torch: see there

import torch
from torch import nn

from networks import NETWORKS
from pytorch_networks import fold_batch_norm, make_network, use_mkldnn

# mkldnn: oneDNN's own layouts, chosen by it for each convolution
LAYOUTS = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last, "mkldnn": torch.contiguous_format}


def parse_arguments():
    parser = measure.make_parser(__doc__.splitlines()[0])
    parser.add_argument("--layout", choices=LAYOUTS, default="nchw")
    parser.add_argument("--jit", action="store_true", help="torch.jit.optimize_for_inference; forward only")
    parser.add_argument("--compile", action="store_true", help="torch.compile, where torch has it")
    options = parser.parse_args()
    if options.jit and options.mode != "forward":
        parser.error("--jit is for --mode forward")
    if options.compile and options.jit:
        parser.error("--compile and --jit exclude each other")
    if options.layout == "mkldnn" and (options.compile or options.jit):
        parser.error("--layout mkldnn excludes --compile and --jit, which choose layouts themselves")
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
    if options.layout == "mkldnn":
        model = use_mkldnn(model)
    images = torch.randn(options.batch_size, *network.image_shape).to(memory_format=LAYOUTS[options.layout])
    labels = torch.randint(network.classes, (options.batch_size,))
    make = make_training_step if options.mode == "train" else make_forward_step
    return make(model, images, labels, options)


def blas_library():
    """What multiplies matrices in fully connected layers. "blas" is the plain libblas: one thread, not vectorised."""
    if torch.backends.mkl.is_available():
        return "mkl"
    return measure.loaded_library(("openblas", "blis", "mkl", "atlas", "blas"), "unknown")


def main():
    options = parse_arguments()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    seconds, loss = measure.time_steps(make_step(options), options)
    capability = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    framework = {
        "framework": "pytorch",
        "version": torch.__version__,
        "layout": options.layout,
        "jit": options.jit,
        "compile": options.compile,
        "threads": torch.get_num_threads(),
        "blas": blas_library(),
        "cpu_capability": capability.group(1) if capability else "unknown",
    }
    measure.print_result(options, framework, seconds, loss)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Trains a network under PyTorch on synthetic data, or runs it forward, and prints the record of the run.

Network, batch, threads, precision, optimizer and the names of the options are those of `trireme bench`, and so is the
protocol: one batch made once, warm-up steps, then timed steps that end when the loss is known. Nothing but torch is
needed.
"""

import contextlib
import functools
import re

import measure  # before torch: see there

import torch
from torch import nn

from networks import find_network
from pytorch_networks import fold_batch_norm, make_network, use_mkldnn

# mkldnn: oneDNN's own layouts, chosen by it for each convolution
LAYOUTS = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last, "mkldnn": torch.contiguous_format}
PLAIN_BLAS = ("PyTorch uses the plain libblas here, which multiplies matrices on one thread without vectors: its fully "
              "connected layers are not at their best. Install OpenBLAS (libopenblas0-pthread)")  # fmt: skip


def make_parser(description):
    parser = measure.make_parser(description)
    parser.add_argument("--layout", choices=LAYOUTS, default="nchw")
    parser.add_argument("--jit", action="store_true", help="torch.jit.optimize_for_inference; forward only")
    parser.add_argument("--compile", action="store_true", help="torch.compile, where torch has it")
    return parser


def check(parser, options):
    if options.jit and not options.forward_only:
        parser.error("--jit is for --forward-only")
    if options.compile and options.jit:
        parser.error("--compile and --jit cannot be used together")
    if options.layout == "mkldnn" and (options.compile or options.jit):
        parser.error("--layout mkldnn excludes --compile and --jit, which choose layouts themselves")
    if options.layout == "mkldnn" and options.precision != "fp32":
        parser.error("--layout mkldnn is for fp32: autocast leaves its tensors alone")
    if options.compile and not hasattr(torch, "compile"):
        parser.error(f"--compile: PyTorch {torch.__version__} has no torch.compile; 2.0 is the first that has")
    return options


def autocast(options):
    """Weights and the optimizer stay fp32; convolutions and matrix products are done in bf16."""
    if options.precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast("cpu", torch.bfloat16)


def make_optimizer(model):
    settings = {"lr": measure.OPTIMIZER["init_learning_rate"], "momentum": measure.OPTIMIZER["momentum"],
                "weight_decay": measure.OPTIMIZER["weight_decay"]}  # fmt: skip
    try:
        return torch.optim.SGD(model.parameters(), fused=True, **settings)
    except (TypeError, RuntimeError):  # versions without, and versions that fuse on GPUs only
        return torch.optim.SGD(model.parameters(), **settings)


def make_training_step(model, images, labels, options, share_optimizer):
    optimizer = share_optimizer(make_optimizer(model), model)
    criterion = nn.CrossEntropyLoss()
    clear_gradients = functools.partial(model.zero_grad, set_to_none=True)  # Horovod's optimizer knows no such option
    if options.compile:
        model = torch.compile(model)

    def step():
        clear_gradients()
        with autocast(options):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def make_forward_step(model, images, labels, options):
    criterion = nn.CrossEntropyLoss()
    if options.jit:
        with torch.no_grad(), autocast(options):
            model = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, images)))
    if options.compile:
        import torch._inductor.config as inductor

        inductor.freezing = True  # weights become constants, stored in the layout that the kernels want
        model = torch.compile(model)

    def step():
        with torch.inference_mode(), autocast(options):
            return criterion(model(images), labels).item()

    return step


def make_step(model, options, share_optimizer=lambda optimizer, model: optimizer):
    """`model` is in the mode and layout of the options; see prepare(). Several processes may share the optimizer."""
    network = find_network(options.model, options.num_classes)
    images = torch.randn(options.batch_size, *network.image_shape).to(memory_format=LAYOUTS[options.layout])
    labels = torch.randint(network.classes, (options.batch_size,))
    if options.forward_only:
        return make_forward_step(model, images, labels, options)
    return make_training_step(model, images, labels, options, share_optimizer)


def prepare(model, options):
    if options.forward_only:
        model.eval()
        fold_batch_norm(model)
    model = model.to(memory_format=LAYOUTS[options.layout])
    return use_mkldnn(model) if options.layout == "mkldnn" else model


def blas_library():
    """What multiplies matrices in fully connected layers. "blas" is the plain libblas: one thread, not vectorised."""
    if torch.backends.mkl.is_available():
        return "mkl"
    return measure.loaded_library(("openblas", "blis", "mkl", "atlas", "blas"), "unknown")


def build_part(options):
    capability = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    blas = blas_library()
    return {
        "framework": "pytorch",
        "version": torch.__version__,
        "layout": options.layout,
        "jit": options.jit,
        "compile": options.compile,
        "threads": torch.get_num_threads(),
        "blas": blas,
        "cpu_capability": capability.group(1) if capability else "unknown",
        "warnings": [PLAIN_BLAS] if blas == "blas" else [],
    }


def main():
    parser = make_parser(__doc__.splitlines()[0])
    options = check(parser, parser.parse_args())
    torch.manual_seed(1)
    torch.set_num_threads(options.num_intra_threads)
    model = make_network(options.model, options.num_classes, not options.no_dropout)
    seconds, losses = measure.time_steps(make_step(prepare(model, options), options), options)
    measure.print_record(options, build_part(options), [measure.rank_part(seconds, losses)])


if __name__ == "__main__":
    main()

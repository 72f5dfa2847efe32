"""The networks of Trireme in plain torch.nn, written from the same description, so that both do the same work: the same
layers, padding, batch norm, dropout and number of classes. `make_network` checks the number of parameters.

SAME padding is symmetric for odd kernels at stride 1. At stride 2 it is not, and appears in two forms only: 3x3 max
pools on an even size, which pad one cell after and none before, as rounding the size up (ceil_mode) does; and
GoogLeNet's first convolution, which is padded explicitly.
"""

import dataclasses
from typing import Callable

import torch
from torch import nn


class Convolutions:
    """Makes the convolutions of one network, each followed by what follows all of them there: a bias and ReLU, or batch
    norm and ReLU. They are nn.Sequential, so that batch norm can be folded into the convolution for inference."""

    def __init__(self, norm=None):
        self.norm = norm  # makes the batch norm for a number of channels; None: a bias instead

    def __call__(self, in_channels, channels, kernel, stride=1, padding="same", relu=True):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        if padding == "same":
            if stride != 1 or any(size % 2 == 0 for size in kernel):
                raise ValueError(f"SAME padding of kernel {kernel}, stride {stride} is not symmetric: pad explicitly")
            padding = tuple(size // 2 for size in kernel)
        layers = [nn.Conv2d(in_channels, channels, kernel, stride, padding, bias=self.norm is None)]
        if self.norm is not None:
            layers.append(self.norm(channels))
        if relu:
            layers.append(nn.ReLU(inplace=True))
        return nn.Sequential(*layers)


def norm_with_gamma(channels):
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.1)


def norm_without_gamma(channels):
    norm = nn.BatchNorm2d(channels, eps=0.001, momentum=0.001)
    norm.weight = None
    return norm


def hidden_layer(inputs, outputs):
    return [nn.Linear(inputs, outputs), nn.ReLU(inplace=True), nn.Dropout(0.5)]


# --- Plain chains -----------------------------------------------------------------------------------------------------


def mnist():
    conv = Convolutions()
    return nn.Sequential(
        conv(1, 32, 5), nn.MaxPool2d(2), conv(32, 64, 5), nn.MaxPool2d(2),
        nn.Flatten(), *hidden_layer(7 * 7 * 64, 1024), nn.Linear(1024, 10),
    )  # fmt: skip


def alexnet_owt():
    conv = Convolutions()
    return nn.Sequential(
        conv(3, 64, 11, stride=4, padding=2), nn.MaxPool2d(3, 2),
        conv(64, 192, 5), nn.MaxPool2d(3, 2),
        conv(192, 384, 3), conv(384, 256, 3), conv(256, 256, 3), nn.MaxPool2d(3, 2),
        nn.Flatten(), *hidden_layer(6 * 6 * 256, 4096), *hidden_layer(4096, 4096), nn.Linear(4096, 1000),
    )  # fmt: skip


def overfeat():
    conv = Convolutions()
    return nn.Sequential(
        conv(3, 96, 11, stride=4, padding=0), nn.MaxPool2d(2),
        conv(96, 256, 5, padding=0), nn.MaxPool2d(2),
        conv(256, 512, 3), conv(512, 1024, 3), conv(1024, 1024, 3), nn.MaxPool2d(2),
        nn.Flatten(), *hidden_layer(6 * 6 * 1024, 3072), *hidden_layer(3072, 4096), nn.Linear(4096, 1001),
    )  # fmt: skip


def vgg(depths):
    conv = Convolutions()
    layers = []
    in_channels = 3
    for channels, depth in zip((64, 128, 256, 512, 512), depths):
        for _ in range(depth):
            layers.append(conv(in_channels, channels, 3))
            in_channels = channels
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), *hidden_layer(7 * 7 * 512, 4096), *hidden_layer(4096, 4096), nn.Linear(4096, 1001)]
    return nn.Sequential(*layers)


# --- ResNet v1 --------------------------------------------------------------------------------------------------------


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with the stride on the first (v1), added to the shortcut."""

    def __init__(self, conv, in_channels, middle, stride):
        super().__init__()
        channels = 4 * middle
        self.body = nn.Sequential(
            conv(in_channels, middle, 1, stride, padding=0),
            conv(middle, middle, 3),
            conv(middle, channels, 1, relu=False),
        )
        self.shortcut = nn.Identity()
        if in_channels != channels:
            self.shortcut = conv(in_channels, channels, 1, stride, padding=0, relu=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x).add_(self.shortcut(x)))


def resnet(depths):
    conv = Convolutions(norm_with_gamma)
    layers = [conv(3, 64, 7, stride=2, padding=3), nn.MaxPool2d(3, 2, ceil_mode=True)]
    channels = 64
    for stage, depth in enumerate(depths):
        for block in range(depth):
            middle = 64 << stage
            layers.append(Bottleneck(conv, channels, middle, stride=2 if stage > 0 and block == 0 else 1))
            channels = 4 * middle
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1001))


# --- Inception family: modules as tables of branches ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Conv:
    channels: int
    kernel: int | tuple[int, int] = 1
    stride: int = 1
    padding: str | int = "same"


def valid(channels, kernel, stride=1):
    return Conv(channels, kernel, stride, padding=0)


@dataclasses.dataclass(frozen=True)
class Fork:
    """Convolutions of the same source, whose results are concatenated; the last layer of a branch."""

    layers: tuple[Conv, ...]


def max_pool():
    return nn.MaxPool2d(3, 1, padding=1)


def average_pool():
    """Divides by the number of cells inside the image."""
    return nn.AvgPool2d(3, 1, padding=1, count_include_pad=False)


def halve_valid():
    return nn.MaxPool2d(3, 2)


def halve_same():
    return nn.MaxPool2d(3, 2, ceil_mode=True)


class Concat(nn.Module):
    """Applies every branch to the source and concatenates the results over channels."""

    def __init__(self, branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class Chain:
    """Builds a network layer by layer and keeps count of channels."""

    def __init__(self, conv, channels):
        self.conv = conv
        self.channels = channels
        self.layers = []

    def add(self, *layers):
        """Layers are Conv, a Fork, or a torch module that leaves the number of channels alone."""
        for layer in layers:
            if isinstance(layer, Conv):
                self.layers.append(self.conv(self.channels, **dataclasses.asdict(layer)))
                self.channels = layer.channels
            elif isinstance(layer, Fork):
                self.add_module(*[[convolution] for convolution in layer.layers])
            else:
                self.layers.append(layer)
        return self

    def add_module(self, *branches):
        chains = [Chain(self.conv, self.channels).add(*branch) for branch in branches]
        self.layers.append(Concat([nn.Sequential(*chain.layers) for chain in chains]))
        self.channels = sum(chain.channels for chain in chains)
        return self

    def finish(self, *layers):
        return nn.Sequential(*self.layers, *layers, nn.Flatten(), nn.Linear(self.channels, 1001))


def googlenet():
    chain = Chain(Convolutions(), 3)

    def module(one, reduce3, three, reduce5, five, pool):
        chain.add_module(
            [Conv(one)],
            [Conv(reduce3), Conv(three, 3)],
            [Conv(reduce5), Conv(five, 5)],
            [max_pool(), Conv(pool)],
        )

    chain.add(nn.ZeroPad2d((2, 3, 2, 3)), valid(64, 7, 2), halve_same(), Conv(64), Conv(192, 3), halve_same())
    module(64, 96, 128, 16, 32, 32)
    module(128, 128, 192, 32, 96, 64)
    chain.add(halve_same())
    module(192, 96, 208, 16, 48, 64)
    module(160, 112, 224, 24, 64, 64)
    module(128, 128, 256, 24, 64, 64)
    module(112, 144, 288, 32, 64, 64)
    module(256, 160, 320, 32, 128, 128)
    chain.add(halve_same())
    module(256, 160, 320, 32, 128, 128)
    module(384, 192, 384, 48, 128, 128)
    return chain.finish(nn.AvgPool2d(7, 1))


def inception3():
    chain = Chain(Convolutions(norm_without_gamma), 3)
    chain.add(valid(32, 3, 2), valid(32, 3), Conv(64, 3), halve_valid(), valid(80, 1), valid(192, 3), halve_valid())
    for pool in (32, 64, 64):
        chain.add_module(
            [Conv(64)],
            [Conv(48), Conv(64, 5)],
            [Conv(64), Conv(96, 3), Conv(96, 3)],
            [average_pool(), Conv(pool)],
        )
    chain.add_module([valid(384, 3, 2)], [Conv(64), Conv(96, 3), valid(96, 3, 2)], [halve_valid()])
    for n in (128, 160, 160, 192):
        chain.add_module(
            [Conv(192)],
            [Conv(n), Conv(n, (1, 7)), Conv(192, (7, 1))],
            [Conv(n), Conv(n, (7, 1)), Conv(n, (1, 7)), Conv(n, (7, 1)), Conv(192, (1, 7))],
            [average_pool(), Conv(192)],
        )
    chain.add_module(
        [Conv(192), valid(320, 3, 2)],
        [Conv(192), Conv(192, (1, 7)), Conv(192, (7, 1)), valid(192, 3, 2)],
        [halve_valid()],
    )
    for pool in (average_pool, max_pool):
        fork = Fork((Conv(384, (1, 3)), Conv(384, (3, 1))))
        chain.add_module([Conv(320)], [Conv(384), fork], [Conv(448), Conv(384, 3), fork], [pool(), Conv(192)])
    return chain.finish(nn.AvgPool2d(8, 1))


def inception4():
    chain = Chain(Convolutions(norm_without_gamma), 3)
    chain.add(valid(32, 3, 2), valid(32, 3), Conv(64, 3))
    chain.add_module([halve_valid()], [valid(96, 3, 2)])
    chain.add_module(
        [Conv(64), valid(96, 3)],
        [Conv(64), Conv(64, (7, 1)), Conv(64, (1, 7)), valid(96, 3)],
    )
    chain.add_module([valid(192, 3, 2)], [halve_valid()])
    for _ in range(4):
        chain.add_module(
            [average_pool(), Conv(96)],
            [Conv(96)],
            [Conv(64), Conv(96, 3)],
            [Conv(64), Conv(96, 3), Conv(96, 3)],
        )
    chain.add_module([halve_valid()], [valid(384, 3, 2)], [Conv(192), Conv(224, 3), valid(256, 3, 2)])
    for _ in range(7):
        chain.add_module(
            [average_pool(), Conv(128)],
            [Conv(384)],
            [Conv(192), Conv(224, (1, 7)), Conv(256, (7, 1))],
            [Conv(192), Conv(192, (1, 7)), Conv(224, (7, 1)), Conv(224, (1, 7)), Conv(256, (7, 1))],
        )
    chain.add_module(
        [halve_valid()],
        [Conv(192), valid(192, 3, 2)],
        [Conv(256), Conv(256, (1, 7)), Conv(320, (7, 1)), valid(320, 3, 2)],
    )
    for _ in range(3):
        chain.add_module(
            [average_pool(), Conv(256)],
            [Conv(256)],
            [Conv(384), Fork((Conv(256, (1, 3)), Conv(256, (3, 1))))],
            [Conv(384), Conv(448, (1, 3)), Conv(512, (3, 1)), Fork((Conv(256, (3, 1)), Conv(256, (1, 3))))],
        )
    return chain.finish(nn.AdaptiveAvgPool2d(1), nn.Dropout(0.2))


# --- The list ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Network:
    image_shape: tuple[int, int, int]  # channels, height, width
    classes: int
    parameters: int  # as `trireme models` counts them
    build: Callable[[], nn.Module]


NETWORKS = {
    "mnist": Network((1, 28, 28), 10, 3_274_634, mnist),
    "alexnet_owt": Network((3, 224, 224), 1000, 61_100_840, alexnet_owt),
    "overfeat": Network((3, 231, 231), 1001, 145_924_969, overfeat),
    "vgg11": Network((3, 224, 224), 1001, 132_867_433, lambda: vgg((1, 1, 2, 2, 2))),
    "vgg16": Network((3, 224, 224), 1001, 138_361_641, lambda: vgg((2, 2, 3, 3, 3))),
    "vgg19": Network((3, 224, 224), 1001, 143_671_337, lambda: vgg((2, 2, 4, 4, 4))),
    "googlenet": Network((3, 224, 224), 1001, 6_999_577, googlenet),
    "inception3": Network((3, 299, 299), 1001, 23_819_401, inception3),
    "inception4": Network((3, 299, 299), 1001, 42_649_769, inception4),
    "resnet50": Network((3, 224, 224), 1001, 25_559_081, lambda: resnet((3, 4, 6, 3))),
    "resnet101": Network((3, 224, 224), 1001, 44_551_209, lambda: resnet((3, 4, 23, 3))),
    "resnet152": Network((3, 224, 224), 1001, 60_194_857, lambda: resnet((3, 8, 36, 3))),
}


def make_network(name):
    network = NETWORKS[name]
    model = network.build()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if parameters != network.parameters:
        raise AssertionError(f"{name} has {parameters:,} parameters here and {network.parameters:,} under Trireme")
    return model


def fold_batch_norm(module):
    """Folds every batch norm, in evaluation mode, into the convolution before it."""
    for child in module.children():
        fold_batch_norm(child)
    if isinstance(module, nn.Sequential):
        for i in range(len(module) - 1):
            if isinstance(module[i], nn.Conv2d) and isinstance(module[i + 1], nn.BatchNorm2d):
                module[i] = nn.utils.fuse_conv_bn_eval(module[i], module[i + 1])
                module[i + 1] = nn.Identity()

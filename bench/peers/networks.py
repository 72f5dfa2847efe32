"""The networks of Trireme as tables of layers, from which pytorch_networks.py and tensorflow_networks.py make the same
work: the same layers, padding, batch norm, dropout and number of classes.

Padding is as in Trireme: "valid" is none, "same" gives ceil(size / stride) cells with the odd one of the padding at the
end, and a number is that many cells at every edge.
"""

import dataclasses
from typing import Union

Kernel = Union[int, tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolution and what follows all convolutions of its network: a bias or batch norm, and ReLU."""

    channels: int
    kernel: Kernel = 1
    stride: int = 1
    padding: Union[str, int] = "same"
    relu: bool = True


@dataclasses.dataclass(frozen=True)
class Pool:
    """An average counts the cells inside the image only."""

    kind: str  # max or average
    kernel: int
    stride: int = 1
    padding: str = "valid"


@dataclasses.dataclass(frozen=True)
class GlobalAverage:
    pass


@dataclasses.dataclass(frozen=True)
class Flatten:
    pass


@dataclasses.dataclass(frozen=True)
class Dense:
    units: int
    relu: bool = False


@dataclasses.dataclass(frozen=True)
class Dropout:
    rate: float


@dataclasses.dataclass(frozen=True)
class Branches:
    """Chains of layers on the same source, whose results are concatenated over channels."""

    chains: tuple[tuple, ...]


@dataclasses.dataclass(frozen=True)
class Residual:
    """relu(body + shortcut). An empty shortcut is the source itself."""

    body: tuple
    shortcut: tuple = ()


@dataclasses.dataclass(frozen=True)
class Norm:
    epsilon: float
    new_share: float  # of a batch in the running statistics
    gamma: bool


@dataclasses.dataclass(frozen=True)
class Network:
    image_shape: tuple[int, int, int]  # channels, height, width
    parameters: Union[int, None]  # as `trireme models` counts them; None: not known
    layers: tuple
    norm: Union[Norm, None] = None  # of its convolutions; None: they have a bias instead

    @property
    def classes(self):
        return self.layers[-1].units


def kernel_size(kernel):
    return (kernel, kernel) if isinstance(kernel, int) else kernel


def output_size(size, kernel, stride, padding):
    """Along one dimension."""
    if padding == "same":
        return -(-size // stride)
    return (size + 2 * (0 if padding == "valid" else padding) - kernel) // stride + 1


def same_padding(kernel, stride, sizes):
    """Cells before and after, per dimension."""
    totals = [max((-(-n // stride) - 1) * stride + k - n, 0) for k, n in zip(kernel, sizes)]
    return [(total // 2, total - total // 2) for total in totals]


# --- Plain chains -----------------------------------------------------------------------------------------------------


def halve(kernel, padding="valid"):
    return Pool("max", kernel, 2, padding)


def hidden(units):
    return Dense(units, relu=True), Dropout(0.5)


MNIST = (Conv(32, 5), halve(2), Conv(64, 5), halve(2), Flatten(), *hidden(1024), Dense(10))

ALEXNET_OWT = (
    Conv(64, 11, 4, padding=2), halve(3),
    Conv(192, 5), halve(3),
    Conv(384, 3), Conv(256, 3), Conv(256, 3), halve(3),
    Flatten(), *hidden(4096), *hidden(4096), Dense(1000),
)  # fmt: skip

OVERFEAT = (
    Conv(96, 11, 4, "valid"), halve(2),
    Conv(256, 5, padding="valid"), halve(2),
    Conv(512, 3), Conv(1024, 3), Conv(1024, 3), halve(2),
    Flatten(), *hidden(3072), *hidden(4096), Dense(1001),
)  # fmt: skip


def vgg(*depths):
    layers = []
    for channels, depth in zip((64, 128, 256, 512, 512), depths):
        layers += [Conv(channels, 3)] * depth + [halve(2)]
    return (*layers, Flatten(), *hidden(4096), *hidden(4096), Dense(1001))


# --- ResNet v1 --------------------------------------------------------------------------------------------------------


def bottleneck(middle, stride, project):
    """1x1, 3x3, 1x1 with the stride on the first (v1)."""
    return Residual(
        (Conv(middle, 1, stride), Conv(middle, 3), Conv(4 * middle, relu=False)),
        (Conv(4 * middle, 1, stride, relu=False),) if project else (),
    )


def resnet(*depths):
    layers = [Conv(64, 7, 2, padding=3), halve(3, "same")]
    for stage, depth in enumerate(depths):
        for block in range(depth):
            layers.append(bottleneck(64 << stage, 2 if stage > 0 and block == 0 else 1, project=block == 0))
    return (*layers, GlobalAverage(), Flatten(), Dense(1001))


# --- Inception family -------------------------------------------------------------------------------------------------


def valid(channels, kernel, stride=1):
    return Conv(channels, kernel, stride, "valid")


def module(*chains):
    return Branches(tuple(tuple(chain) for chain in chains))


def fork(*layers):
    """Convolutions of the same source; the last layer of a branch."""
    return module(*[[layer] for layer in layers])


MAX_POOL = Pool("max", 3, padding="same")
AVERAGE_POOL = Pool("average", 3, padding="same")


def googlenet():
    def inception(one, reduce3, three, reduce5, five, pool):
        return module(
            [Conv(one)],
            [Conv(reduce3), Conv(three, 3)],
            [Conv(reduce5), Conv(five, 5)],
            [MAX_POOL, Conv(pool)],
        )

    return (
        Conv(64, 7, 2), halve(3, "same"), Conv(64), Conv(192, 3), halve(3, "same"),
        inception(64, 96, 128, 16, 32, 32),
        inception(128, 128, 192, 32, 96, 64),
        halve(3, "same"),
        inception(192, 96, 208, 16, 48, 64),
        inception(160, 112, 224, 24, 64, 64),
        inception(128, 128, 256, 24, 64, 64),
        inception(112, 144, 288, 32, 64, 64),
        inception(256, 160, 320, 32, 128, 128),
        halve(3, "same"),
        inception(256, 160, 320, 32, 128, 128),
        inception(384, 192, 384, 48, 128, 128),
        Pool("average", 7), Flatten(), Dense(1001),
    )  # fmt: skip


def inception3():
    layers = [valid(32, 3, 2), valid(32, 3), Conv(64, 3), halve(3), valid(80, 1), valid(192, 3), halve(3)]
    for pool in (32, 64, 64):
        layers.append(module(
            [Conv(64)],
            [Conv(48), Conv(64, 5)],
            [Conv(64), Conv(96, 3), Conv(96, 3)],
            [AVERAGE_POOL, Conv(pool)],
        ))  # fmt: skip
    layers.append(module([valid(384, 3, 2)], [Conv(64), Conv(96, 3), valid(96, 3, 2)], [halve(3)]))
    for n in (128, 160, 160, 192):
        layers.append(module(
            [Conv(192)],
            [Conv(n), Conv(n, (1, 7)), Conv(192, (7, 1))],
            [Conv(n), Conv(n, (7, 1)), Conv(n, (1, 7)), Conv(n, (7, 1)), Conv(192, (1, 7))],
            [AVERAGE_POOL, Conv(192)],
        ))  # fmt: skip
    layers.append(module(
        [Conv(192), valid(320, 3, 2)],
        [Conv(192), Conv(192, (1, 7)), Conv(192, (7, 1)), valid(192, 3, 2)],
        [halve(3)],
    ))  # fmt: skip
    for pool in (AVERAGE_POOL, MAX_POOL):
        ends = fork(Conv(384, (1, 3)), Conv(384, (3, 1)))
        layers.append(module([Conv(320)], [Conv(384), ends], [Conv(448), Conv(384, 3), ends], [pool, Conv(192)]))
    return (*layers, Pool("average", 8), Flatten(), Dense(1001))


def inception4():
    layers = [
        valid(32, 3, 2), valid(32, 3), Conv(64, 3),
        module([halve(3)], [valid(96, 3, 2)]),
        module([Conv(64), valid(96, 3)], [Conv(64), Conv(64, (7, 1)), Conv(64, (1, 7)), valid(96, 3)]),
        module([valid(192, 3, 2)], [halve(3)]),
    ]  # fmt: skip
    layers += [module(
        [AVERAGE_POOL, Conv(96)],
        [Conv(96)],
        [Conv(64), Conv(96, 3)],
        [Conv(64), Conv(96, 3), Conv(96, 3)],
    )] * 4  # fmt: skip
    layers.append(module([halve(3)], [valid(384, 3, 2)], [Conv(192), Conv(224, 3), valid(256, 3, 2)]))
    layers += [module(
        [AVERAGE_POOL, Conv(128)],
        [Conv(384)],
        [Conv(192), Conv(224, (1, 7)), Conv(256, (7, 1))],
        [Conv(192), Conv(192, (1, 7)), Conv(224, (7, 1)), Conv(224, (1, 7)), Conv(256, (7, 1))],
    )] * 7  # fmt: skip
    layers.append(module(
        [halve(3)],
        [Conv(192), valid(192, 3, 2)],
        [Conv(256), Conv(256, (1, 7)), Conv(320, (7, 1)), valid(320, 3, 2)],
    ))  # fmt: skip
    layers += [module(
        [AVERAGE_POOL, Conv(256)],
        [Conv(256)],
        [Conv(384), fork(Conv(256, (1, 3)), Conv(256, (3, 1)))],
        [Conv(384), Conv(448, (1, 3)), Conv(512, (3, 1)), fork(Conv(256, (3, 1)), Conv(256, (1, 3)))],
    )] * 3  # fmt: skip
    return (*layers, GlobalAverage(), Dropout(0.2), Flatten(), Dense(1001))


# --- The list ---------------------------------------------------------------------------------------------------------

RESNET_NORM = Norm(epsilon=1e-5, new_share=0.1, gamma=True)
INCEPTION_NORM = Norm(epsilon=0.001, new_share=0.001, gamma=False)

NETWORKS = {
    "mnist": Network((1, 28, 28), 3_274_634, MNIST),
    "alexnet_owt": Network((3, 224, 224), 61_100_840, ALEXNET_OWT),
    "overfeat": Network((3, 231, 231), 145_924_969, OVERFEAT),
    "vgg11": Network((3, 224, 224), 132_867_433, vgg(1, 1, 2, 2, 2)),
    "vgg16": Network((3, 224, 224), 138_361_641, vgg(2, 2, 3, 3, 3)),
    "vgg19": Network((3, 224, 224), 143_671_337, vgg(2, 2, 4, 4, 4)),
    "googlenet": Network((3, 224, 224), 6_999_577, googlenet()),
    "inception3": Network((3, 299, 299), 23_819_401, inception3(), INCEPTION_NORM),
    "inception4": Network((3, 299, 299), 42_649_769, inception4(), INCEPTION_NORM),
    "resnet50": Network((3, 224, 224), 25_559_081, resnet(3, 4, 6, 3), RESNET_NORM),
    "resnet101": Network((3, 224, 224), 44_551_209, resnet(3, 4, 23, 3), RESNET_NORM),
    "resnet152": Network((3, 224, 224), 60_194_857, resnet(3, 8, 36, 3), RESNET_NORM),
}


def find_network(name, classes=None, dropout=True):
    """The network, with another number of classes or without dropout where that is asked for."""
    network = NETWORKS[name]
    layers = tuple(layer for layer in network.layers if dropout or not isinstance(layer, Dropout))
    parameters = network.parameters
    if classes not in (None, network.classes):
        layers = (*layers[:-1], Dense(classes))
        parameters = None  # known for its own number of classes
    return dataclasses.replace(network, layers=layers, parameters=parameters)


def check_parameters(name, network, parameters):
    if network.parameters not in (None, parameters):
        raise AssertionError(f"{name} has {parameters:,} parameters here and {network.parameters:,} under Trireme")

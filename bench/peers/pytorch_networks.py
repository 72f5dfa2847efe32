"""Makes the networks of networks.py in plain torch.nn, with ReLU and additions in place."""

import functools

import torch
import torch.utils.mkldnn
from torch import nn

import networks
from networks import kernel_size, output_size, same_padding


class Pad(nn.ZeroPad2d):
    def forward(self, x):
        return super().forward(x.to_dense()).to_mkldnn() if x.is_mkldnn else super().forward(x)


class Concat(nn.Module):
    """Applies every branch to the source and concatenates the results over channels. Tensors in oneDNN's own layouts
    cannot be concatenated, so that they have to leave them for it."""

    def __init__(self, branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        parts = [branch(x) for branch in self.branches]
        if x.is_mkldnn:
            return torch.cat([part.to_dense() for part in parts], 1).to_mkldnn()
        return torch.cat(parts, 1)


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body = body
        self.shortcut = shortcut
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x).add_(self.shortcut(x)))


class Flatten(nn.Module):
    """Here oneDNN's own layouts end: dropout cannot read them."""

    def forward(self, x):
        return (x.to_dense() if x.is_mkldnn else x).flatten(1)


def make_norm(norm, channels):
    layer = nn.BatchNorm2d(channels, eps=norm.epsilon, momentum=norm.new_share)
    if not norm.gamma:
        # Not trained, but there: without a scale, channels last has no backward on GPUs, and oneDNN's layouts nothing.
        del layer.weight
        layer.register_buffer("weight", torch.ones(channels), persistent=False)
    return layer


class Builder:
    """Makes layers one after another and keeps the shape of what they give: channels, height, width."""

    def __init__(self, norm):
        self.norm = norm

    def chain(self, layers, shape):
        """As nn.Sequential, and the shape after it."""
        modules = []
        for layer in layers:
            module, shape = self.make(layer, shape)
            modules.append(module)
        return nn.Sequential(*modules), shape

    @functools.singledispatchmethod
    def make(self, layer, shape):
        raise TypeError(f"no such layer: {layer}")

    @make.register
    def _(self, layer: networks.Conv, shape):
        kernel = kernel_size(layer.kernel)
        pads = same_padding(kernel, layer.stride, shape[1:]) if layer.padding == "same" else None
        modules = []
        padding = 0 if layer.padding == "valid" else layer.padding
        if pads and all(before == after for before, after in pads):
            padding = tuple(before for before, _ in pads)
        elif pads:
            modules.append(Pad((*pads[1], *pads[0])))  # the last dimension comes first
            padding = 0
        # nn.Sequential, so that batch norm can be folded into the convolution for inference
        modules.append(nn.Conv2d(shape[0], layer.channels, kernel, layer.stride, padding, bias=self.norm is None))
        if self.norm is not None:
            modules.append(make_norm(self.norm, layer.channels))
        if layer.relu:
            modules.append(nn.ReLU(inplace=True))
        sizes = [output_size(n, k, layer.stride, layer.padding) for n, k in zip(shape[1:], kernel)]
        return nn.Sequential(*modules), (layer.channels, *sizes)

    @make.register
    def _(self, layer: networks.Pool, shape):
        sizes = [output_size(n, layer.kernel, layer.stride, layer.padding) for n in shape[1:]]
        settings = {}
        if layer.padding == "same":
            pads = set(same_padding((layer.kernel,) * 2, layer.stride, shape[1:]))
            # Cells that are missing at the end only: rounding the size up means the same to a maximum.
            settings = {(1, 1): {"padding": 1}, (0, 1): {"ceil_mode": True}}[pads.pop()]
        if layer.kind == "max":
            module = nn.MaxPool2d(layer.kernel, layer.stride, **settings)
        else:
            module = nn.AvgPool2d(layer.kernel, layer.stride, count_include_pad=False, **settings)
        return module, (shape[0], *sizes)

    @make.register
    def _(self, layer: networks.GlobalAverage, shape):
        return nn.AdaptiveAvgPool2d(1), (shape[0], 1, 1)

    @make.register
    def _(self, layer: networks.Flatten, shape):
        return Flatten(), (shape[0] * shape[1] * shape[2],)

    @make.register
    def _(self, layer: networks.Dense, shape):
        linear = nn.Linear(shape[0], layer.units)
        return nn.Sequential(linear, nn.ReLU(inplace=True)) if layer.relu else linear, (layer.units,)

    @make.register
    def _(self, layer: networks.Dropout, shape):
        return nn.Dropout(layer.rate), shape

    @make.register
    def _(self, layer: networks.Branches, shape):
        chains, shapes = zip(*[self.chain(chain, shape) for chain in layer.chains])
        return Concat(chains), (sum(part[0] for part in shapes), *shapes[0][1:])

    @make.register
    def _(self, layer: networks.Residual, shape):
        body, after = self.chain(layer.body, shape)
        shortcut = self.chain(layer.shortcut, shape)[0] if layer.shortcut else nn.Identity()
        return Residual(body, shortcut), after


def make_network(name, classes=None, dropout=True):
    network = networks.find_network(name, classes, dropout)
    model, _ = Builder(network.norm).chain(network.layers, network.image_shape)
    networks.check_parameters(name, network, sum(parameter.numel() for parameter in model.parameters()))
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


class FromMkldnn(nn.Module):
    """A model that computes in oneDNN's own layouts, for images and results in plain ones."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x.to_mkldnn())


def use_mkldnn(model):
    """The model with activations in oneDNN's own (blocked) layouts up to `Flatten`. In training, weights stay plain:
    convolutions refuse others there. In evaluation mode they are stored in oneDNN's layouts once."""
    if not model.training:
        return FromMkldnn(torch.utils.mkldnn.to_mkldnn(model))
    return FromMkldnn(model)

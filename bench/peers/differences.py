"""What is the same and what differs between a network under Trireme and under its peers, worked out from networks.py,
and the same of how they are measured. In sentences, for `trireme compare` to print."""

from networks import (
    NETWORKS,
    Branches,
    Conv,
    Dense,
    Dropout,
    GlobalAverage,
    Pool,
    Residual,
    kernel_size,
    output_size,
    same_padding,
)

MEASUREMENT = {
    "same": [
        "synthetic images of the same shape, one batch made once; softmax cross entropy; SGD with momentum 0.9 and weight "
        "decay 4e-5 on all parameters; the same threads; warm-up steps, then timed steps, each until the loss is known; "
        "images/sec = batch / mean step time; memory = the largest resident set of a process, or on a GPU the most "
        "allocated there",
    ],
    "all": [
        "initial weights and the values of images and labels are drawn by each framework's own generator",
        "Trireme chooses its learning rate by the network, the others have 0.001: no influence on the time",
        "max-seconds counts from the first step under Trireme, from the second under the others, which trace and compile "
        "in their first; Trireme times its kernels before its first step",
    ],
    "pytorch": [
        "forward only: eval and inference_mode, batch norm folded into the convolutions",
        "bf16: autocast, fp32 weights, converted in every step",
        "on a GPU: steps are timed by CUDA events, without waiting for each loss; fp16: autocast and GradScaler",
    ],
    "tensorflow": [
        "forward only: batch norm folded into the convolutions",
        "bf16: the graph is rewritten by auto_mixed_precision_onednn_bfloat16, fp32 weights, converted in every step",
        "weight decay is an operation of its own in front of the update",
    ],
}


def plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Walk:
    """Goes through the layers with the sizes of what they read, as the builders do, and counts."""

    def __init__(self, network):
        self.convolutions = self.norms = self.dense = 0
        self.uneven = self.explicit = self.end_pools = self.concatenations = self.additions = 0
        self.dropouts = []
        self.norm = network.norm
        self.chain(network.layers, network.image_shape[1:])

    def chain(self, layers, sizes):
        for layer in layers:
            sizes = self.visit(layer, sizes)
        return sizes

    def visit(self, layer, sizes):
        if isinstance(layer, Conv):
            return self.convolution(layer, sizes)
        if isinstance(layer, Pool):
            if layer.padding == "same":
                pads = same_padding((layer.kernel,) * 2, layer.stride, sizes)
                self.end_pools += any(before != after for before, after in pads)
            return [output_size(size, layer.kernel, layer.stride, layer.padding) for size in sizes]
        if isinstance(layer, GlobalAverage):
            return [1, 1]
        if isinstance(layer, Branches):
            self.concatenations += 1
            return [self.chain(chain, sizes) for chain in layer.chains][0]
        if isinstance(layer, Residual):
            self.additions += 1
            self.chain(layer.shortcut, sizes)
            return self.chain(layer.body, sizes)
        self.dense += isinstance(layer, Dense)
        if isinstance(layer, Dropout):
            self.dropouts.append(layer.rate)
        return sizes

    def convolution(self, layer, sizes):
        self.convolutions += 1
        self.norms += self.norm is not None
        kernel = kernel_size(layer.kernel)
        if layer.padding == "same":
            self.uneven += any(before != after for before, after in same_padding(kernel, layer.stride, sizes))
        elif layer.padding != "valid":
            self.explicit += 1
        return [output_size(size, k, layer.stride, layer.padding) for size, k in zip(sizes, kernel)]


def same_text(network, walk):
    parts = [plural(walk.convolutions, "convolution"), plural(walk.dense, "fully connected layer")]
    if walk.concatenations:
        parts.append(plural(walk.concatenations, "concatenation"))
    if walk.additions:
        parts.append(plural(walk.additions, "addition"))
    if network.norm:
        gamma = "with" if network.norm.gamma else "without"
        parts.append(f"batch norm after each convolution (epsilon {network.norm.epsilon:g}, {gamma} gamma)")
    else:
        parts.append("biases, no batch norm")
    if walk.dropouts:
        rates = " and ".join(sorted({f"{rate:g}" for rate in walk.dropouts}))
        parts.append(f"dropout {rates} in {plural(len(walk.dropouts), 'place')} when training")
    else:
        parts.append("no dropout")
    parts.append("no local response normalisation, no auxiliary heads")
    return f"{network.parameters:,} parameters; " + ", ".join(parts)


def of_network(name):
    network = NETWORKS[name]
    walk = Walk(network)
    pytorch, tensorflow = [], []
    if walk.uneven:
        pytorch.append(f"{plural(walk.uneven, 'convolution')} with one cell more of padding at the end: a separate "
                       "padding operation, which PyTorch needs for it")  # fmt: skip
    if walk.end_pools:
        pytorch.append(f"{plural(walk.end_pools, 'pooling layer')} padded at the end: by rounding the size up (ceil_mode)")
    if walk.norms and not network.norm.gamma:
        pytorch.append("batch norm multiplies by a gamma of ones, which is not trained: PyTorch has none without")
        tensorflow.append("batch norm multiplies by a gamma of ones, which is not trained: TensorFlow has none without")
    if walk.explicit:
        tensorflow.append(f"{plural(walk.explicit, 'convolution')} with explicit padding, given as a list of edges")
    return {"same": same_text(network, walk), "pytorch": pytorch, "tensorflow": tensorflow}

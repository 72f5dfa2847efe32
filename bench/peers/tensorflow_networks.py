"""Makes the networks of networks.py from TensorFlow's own operations, NHWC.

Not from Keras layers: those of Keras 3 do batch norm in many small operations, where TensorFlow has one. Without
training, batch norm is folded into the convolutions.
"""

import functools
import math

import tensorflow as tf

import networks
from networks import kernel_size, output_size


class Model:
    """Call it with images to get logits. Keeps its variables, those that are trained and the running statistics."""

    def __init__(self, network, training):
        self.norm = network.norm
        self.training = training
        self.trained = []
        self.statistics = []
        channels, height, width = network.image_shape
        self.apply, _ = self.chain(network.layers, (height, width, channels))

    def __call__(self, images):
        return self.apply(images)

    def variable(self, value):
        self.trained.append(tf.Variable(value))
        return self.trained[-1]

    def weights(self, shape, scale=1.0):
        fan_in = math.prod(shape[:-1])
        return self.variable(tf.random.normal(shape, stddev=scale / math.sqrt(fan_in)))

    def statistic(self, value):
        self.statistics.append(tf.Variable(value, trainable=False))
        return self.statistics[-1]

    def chain(self, layers, shape):
        """A function that applies the layers, and the shape after them: height, width, channels."""
        functions = []
        for layer in layers:
            function, shape = self.make(layer, shape)
            functions.append(function)
        return lambda x: functools.reduce(lambda value, function: function(value), functions, x), shape

    def after_convolution(self, channels):
        """A bias, or batch norm."""
        if self.norm is None or not self.training:
            bias = self.variable(tf.zeros(channels))
            return lambda x: tf.nn.bias_add(x, bias)
        norm = self.norm
        ones = tf.ones(channels)
        gamma = self.variable(ones) if norm.gamma else ones
        beta = self.variable(tf.zeros(channels))
        mean = self.statistic(tf.zeros(channels))
        variance = self.statistic(tf.ones(channels))

        def normalize(x):
            y, new_mean, new_variance = tf.compat.v1.nn.fused_batch_norm(
                x, gamma, beta, mean, variance, norm.epsilon, exponential_avg_factor=norm.new_share)  # fmt: skip
            mean.assign(new_mean)
            variance.assign(new_variance)
            return y

        return normalize

    @functools.singledispatchmethod
    def make(self, layer, shape):
        raise TypeError(f"no such layer: {layer}")

    @make.register
    def _(self, layer: networks.Conv, shape):
        kernel = kernel_size(layer.kernel)
        padding = layer.padding
        if isinstance(padding, int):
            edge = [padding, padding]
            padding = [[0, 0], edge, edge, [0, 0]]
        folded = self.norm is not None and not self.training  # with statistics that nothing has changed
        scale = 1 / math.sqrt(1 + self.norm.epsilon) if folded else 1
        filters = self.weights((*kernel, shape[2], layer.channels), scale)
        finish = self.after_convolution(layer.channels)

        def convolve(x):
            name = padding.upper() if isinstance(padding, str) else padding
            y = finish(tf.nn.conv2d(x, filters, layer.stride, name))
            return tf.nn.relu(y) if layer.relu else y

        sizes = [output_size(n, k, layer.stride, layer.padding) for n, k in zip(shape, kernel)]
        return convolve, (*sizes, layer.channels)

    @make.register
    def _(self, layer: networks.Pool, shape):
        pool = tf.nn.max_pool2d if layer.kind == "max" else tf.nn.avg_pool2d
        sizes = [output_size(n, layer.kernel, layer.stride, layer.padding) for n in shape[:2]]
        return lambda x: pool(x, layer.kernel, layer.stride, layer.padding.upper()), (*sizes, shape[2])

    @make.register
    def _(self, layer: networks.GlobalAverage, shape):
        return lambda x: tf.reduce_mean(x, (1, 2), keepdims=True), (1, 1, shape[2])

    @make.register
    def _(self, layer: networks.Flatten, shape):
        size = math.prod(shape)
        return lambda x: tf.reshape(x, (-1, size)), (size,)

    @make.register
    def _(self, layer: networks.Dense, shape):
        weights = self.weights((shape[0], layer.units))
        bias = self.variable(tf.zeros(layer.units))

        def multiply(x):
            y = tf.nn.bias_add(tf.matmul(x, weights), bias)
            return tf.nn.relu(y) if layer.relu else y

        return multiply, (layer.units,)

    @make.register
    def _(self, layer: networks.Dropout, shape):
        return (lambda x: tf.nn.dropout(x, layer.rate)) if self.training else (lambda x: x), shape

    @make.register
    def _(self, layer: networks.Branches, shape):
        chains, shapes = zip(*[self.chain(chain, shape) for chain in layer.chains])
        channels = sum(part[2] for part in shapes)
        return lambda x: tf.concat([chain(x) for chain in chains], 3), (*shapes[0][:2], channels)

    @make.register
    def _(self, layer: networks.Residual, shape):
        body, after = self.chain(layer.body, shape)
        shortcut, _ = self.chain(layer.shortcut, shape)
        return lambda x: tf.nn.relu(body(x) + shortcut(x)), after


def make_network(name, training, classes=None, dropout=True):
    network = networks.find_network(name, classes, dropout)
    model = Model(network, training)
    if training:  # folding has taken gammas away
        networks.check_parameters(name, network, sum(math.prod(variable.shape) for variable in model.trained))
    return model

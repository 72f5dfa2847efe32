#!/usr/bin/env python3
"""Trains a network under TensorFlow on synthetic data, or runs it forward, and prints the record of the run.

Network, batch, threads, precision, optimizer and the names of the options are those of `trireme bench`, and so is the
protocol: one batch made once, warm-up steps, then timed steps that end when the loss is known. Nothing but TensorFlow is
needed. A whole step is one tf.function.
"""

import os

import measure

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors only
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # by itself, on for some CPUs only
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import tensorflow as tf  # noqa: E402

from networks import find_network  # noqa: E402
from tensorflow_networks import make_network  # noqa: E402


def parse_arguments():
    parser = measure.make_parser(__doc__.splitlines()[0])
    parser.add_argument("--xla", action="store_true", help="compile the step with XLA (jit_compile)")
    options = parser.parse_args()
    if options.xla and options.precision != "fp32":
        parser.error("--xla is for fp32: what TensorFlow does for bf16 happens to the graph, which XLA takes before that")
    return options


def loss_of(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def make_training_step(model, images, labels, options):
    momenta = [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in model.trained]

    @tf.function(jit_compile=options.xla, autograph=False)
    def train(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(model(images), labels)
        for variable, momentum, gradient in zip(model.trained, momenta, tape.gradient(loss, model.trained)):
            # One operation per variable; Keras' optimizers take several, and decay weights in another way.
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle, accum=momentum.handle, lr=measure.OPTIMIZER["init_learning_rate"],
                momentum=measure.OPTIMIZER["momentum"],
                grad=gradient + measure.OPTIMIZER["weight_decay"] * variable)  # fmt: skip
        return loss

    return lambda: float(train(images, labels))


def make_forward_step(model, images, labels, options):
    @tf.function(jit_compile=options.xla, autograph=False)
    def forward(images, labels):
        return loss_of(model(images), labels)

    return lambda: float(forward(images, labels))


def make_step(options):
    network = find_network(options.model, options.num_classes)
    channels, height, width = network.image_shape
    model = make_network(options.model, not options.forward_only, options.num_classes, not options.no_dropout)
    images = tf.random.normal((options.batch_size, height, width, channels))
    labels = tf.random.uniform((options.batch_size,), maxval=network.classes, dtype=tf.int32)
    make = make_forward_step if options.forward_only else make_training_step
    return make(model, images, labels, options)


def main():
    options = parse_arguments()
    tf.random.set_seed(1)
    tf.config.threading.set_intra_op_parallelism_threads(options.num_intra_threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.num_intra_threads)  # its default: as many as cores
    if options.precision == "bf16":  # weights and the optimizer stay fp32
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})
    seconds, losses = measure.time_steps(make_step(options), options)
    build = {
        "framework": "tensorflow",
        "version": tf.__version__,
        "layout": "nhwc",
        "xla": options.xla,
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "warnings": [],
    }
    measure.print_record(options, build, [measure.rank_part(seconds, losses)])


if __name__ == "__main__":
    main()

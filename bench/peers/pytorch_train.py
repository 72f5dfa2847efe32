#!/usr/bin/python3
"""Trains a network of Trireme's under PyTorch on synthetic data and prints images per second and peak memory as JSON.

The networks are written here from the same description as Trireme's, so that both do the same work: the same layers,
batch, data type, optimizer and number of threads. Nothing but torch is needed.
"""

import argparse
import json
import os
import re
import statistics
import sys
import time

import torch
from torch import nn


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with the stride on the first (ResNet v1), added to the shortcut."""

    def __init__(self, in_channels, mid_channels, out_channels, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, 1, stride, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, mid_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
        )
        self.shortcut = nn.Identity()
        if in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride, bias=False), nn.BatchNorm2d(out_channels)
            )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x).add_(self.shortcut(x)))


def resnet(repeats, classes):
    # Rounding up pads the 3x3/2 pool on 112 pixels by one cell after and none before, as TensorFlow's SAME does.
    layers = [
        nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, ceil_mode=True),
    ]
    channels = 64
    for stage, count in enumerate(repeats):
        mid_channels = 64 << stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Bottleneck(channels, mid_channels, 4 * mid_channels, stride))
            channels = 4 * mid_channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*layers)


MODELS = {
    "resnet50": lambda classes: resnet([3, 4, 6, 3], classes),
    "resnet101": lambda classes: resnet([3, 4, 23, 3], classes),
    "resnet152": lambda classes: resnet([3, 8, 36, 3], classes),
}


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="resnet50")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--steps", type=positive, default=10, help="timed steps")
    parser.add_argument("--warmup-steps", type=int, default=2)
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--image-size", type=positive, default=224)
    parser.add_argument("--num-classes", type=positive, default=1001)
    parser.add_argument("--channels-last", action="store_true", help="NHWC, PyTorch's faster layout for convolutions")
    return parser.parse_args()


def train(options):
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    model = MODELS[options.model](options.num_classes)
    images = torch.randn(options.batch_size, 3, options.image_size, options.image_size)
    labels = torch.randint(options.num_classes, (options.batch_size,))
    if options.channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    seconds = []
    for step in range(options.warmup_steps + options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        last_loss = loss.item()
        if step >= options.warmup_steps:
            seconds.append(time.perf_counter() - begin)
    return sum(parameter.numel() for parameter in model.parameters()), last_loss, seconds


def peak_rss_bytes():
    """The same figure as Trireme reports; getrusage() would count the peak of the parent process as well."""
    with open("/proc/self/status", encoding="ascii") as status:
        return int(re.search(r"^VmHWM:\s*(\d+) kB$", status.read(), re.MULTILINE).group(1)) * 1024


def main():
    options = parse_arguments()
    parameters, loss, seconds = train(options)
    result = {
        "framework": "pytorch " + torch.__version__,
        "config": vars(options),
        "parameters": parameters,
        "images_per_second": options.batch_size / statistics.mean(seconds),
        "step_seconds": {"mean": statistics.mean(seconds), "median": statistics.median(seconds), "all": seconds},
        "loss": loss,
        "peak_rss_bytes": peak_rss_bytes(),
    }
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()

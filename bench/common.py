"""What the programs in this folder have in common: a piece of work by its name, options, output, medians."""

import argparse
import dataclasses
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODES = ("train", "forward")


class BenchError(Exception):
    """Something is missing or failed; the message is for the user."""


@dataclasses.dataclass(frozen=True)
class Work:
    model: str
    batch: int
    mode: str  # one of MODES

    def __str__(self):
        return f"{self.model}, batch {self.batch}, {'training' if self.mode == 'train' else 'forward only'}"


def parse_work(text):
    model, _, rest = text.partition(":")
    batch, _, mode = rest.partition(":")
    mode = mode or "train"
    if not model or not batch.isdecimal() or int(batch) < 1 or mode not in MODES:
        raise argparse.ArgumentTypeError(f"'{text}' is not MODEL:BATCH or MODEL:BATCH:train|forward")
    return Work(model, int(batch), mode)


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


def say(text):
    print(text, file=sys.stderr, flush=True)


def spread(values):
    """Median and range."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def ratio_text(ratio):
    return f"{ratio['median']:.2f}x ({ratio['min']:.2f} to {ratio['max']:.2f})"

"""Curves over a linear axis, on a logarithmic one, as an SVG picture. The background is part of the picture, so that it
reads the same on pages of any colour."""

import dataclasses
import math
from xml.sax.saxutils import escape

# Told apart by people who see colours differently (Okabe and Ito).
COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#0072b2", "#cc79a7")
PAPER, INK, GRID = "#ffffff", "#24292f", "#d8dee4"
WIDTH, HEIGHT = 880, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 44, 54  # margins; the legend is on the right
LINE = 20  # of text


@dataclasses.dataclass(frozen=True)
class Curve:
    name: str
    points: list[tuple[float, float]]


def round_steps(end, most=8):
    """The ticks of an axis from 0 to `end`: at most so many steps of 1, 2 or 5 times a power of ten."""
    for exponent in range(-6, 12):
        for factor in (1, 2, 5):
            step = factor * 10.0**exponent
            if end / step <= most:
                return [step * i for i in range(math.floor(end / step + 1e-9) + 1)]
    raise ValueError(f"no ticks up to {end}")


def decade_ticks(low, high):
    """1, 2 and 5 times powers of ten from `low` to `high`."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**exponent for exponent in exponents for factor in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour, width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


class Axes:
    """From values to places in the picture."""

    def __init__(self, curves):
        values = [y for curve in curves for _, y in curve.points]
        self.end = max(x for curve in curves for x, _ in curve.points)
        self.low, self.high = min(values) / 1.1, max(values) * 1.1

    def x(self, value):
        return LEFT + value / self.end * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def frame(axes, x_label, y_label):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for tick in round_steps(axes.end):
        parts.append(line(axes.x(tick), TOP, axes.x(tick), bottom, GRID))
        parts.append(text(axes.x(tick), bottom + LINE, f"{tick:g}", "middle"))
    for tick in decade_ticks(axes.low, axes.high):
        parts.append(line(LEFT, axes.y(tick), right, axes.y(tick), GRID))
        parts.append(text(LEFT - 8, axes.y(tick) + 5, f"{tick:g}", "end"))
    parts.append(line(LEFT, bottom, right, bottom, INK))
    parts.append(line(LEFT, TOP, LEFT, bottom, INK))
    parts.append(text((LEFT + right) / 2, HEIGHT - 12, x_label, "middle"))
    middle = (TOP + bottom) / 2
    parts.append(text(18, middle, y_label, "middle", f'transform="rotate(-90 18 {middle:.1f})"'))
    return parts


def drawn(axes, curve, colour):
    places = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in curve.points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-linejoin="round"/>'


def legend(curves):
    parts = []
    for i, (curve, colour) in enumerate(zip(curves, COLOURS)):
        y = TOP + 10 + i * LINE
        parts.append(line(WIDTH - RIGHT + 18, y, WIDTH - RIGHT + 44, y, colour, 3))
        parts.append(text(WIDTH - RIGHT + 52, y + 5, curve.name))
    return parts


def to_svg(title, x_label, y_label, curves):
    """Curves of values above 0, at most as many as there are colours."""
    if len(curves) > len(COLOURS):
        raise ValueError(f"{len(curves)} curves, and {len(COLOURS)} colours")
    axes = Axes(curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="13" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{PAPER}"/>',
        text(LEFT, 26, title, more='font-size="15" font-weight="bold"'),
        *frame(axes, x_label, y_label),
        *[drawn(axes, curve, colour) for curve, colour in zip(curves, COLOURS)],
        *legend(curves),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"

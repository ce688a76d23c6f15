"""Accuracy against bias, one point per method, and the frontier: the trade-offs that none of the others improves on.

Bias runs to the right and accuracy upwards, so better is up and to the left. The ground is transparent, and the colours
are of medium lightness, so that the picture can be read on white and on black.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equfl.plots._labels import Segment, place_labels

INK = "#7a7f87"
"""Words, axes and error bars: 4 to 1 against white and against black."""
PLAIN = "#2f7fd6"
BY_GROUP = "#d2691e"
KEY = (
    "Bars: standard deviation over the seeds. Hollow: predicts with the person's group.\n"
    "Line: the frontier, where no other mean is better in both; dotted: with the hollow ones."
)
SIZE = (8.0, 5.4)
"""Inches."""
FAR = 6.0
"""A point so many times farther from the median than half of the points are would press all others together; it stands
at the edge, with its numbers."""


@dataclass(frozen=True)
class Point:
    """One method: means and standard deviations; NaN where there is one seed only."""

    label: str
    bias: float
    accuracy: float
    bias_deviation: float
    accuracy_deviation: float
    by_group: bool
    """Whether its predictions use the person's group."""


def draw(points: Sequence[Point], files: Sequence[Path], *, title: str, bias_name: str) -> None:
    """Write the picture in each file's format (SVG, PNG, PDF)."""
    with matplotlib.rc_context({"font.size": 10, "svg.hashsalt": "equfl", "text.color": INK, "axes.labelcolor": INK}):
        figure = Figure(figsize=SIZE, dpi=100, layout="constrained")
        axes = figure.add_subplot()
        _frame(axes, title, bias_name)
        far = [point for point in points if _is_far(point, points)]
        near = [point for point in points if point not in far]
        _limits(axes, near)
        (left, right), bottom = axes.get_xlim(), axes.get_ylim()[0]
        lines = [(left, bottom, right, bottom), *_frontiers(axes, points)]
        for point in near:
            lines += _mark(axes, point)
        words = [(point.label, point.bias, point.accuracy, _colour(point)) for point in near]
        words += [_at_the_edge(axes, point) for point in far]
        # The layout first: labels are placed by pixels.
        figure.draw_without_rendering()
        place_labels(axes, words, lines)
        for file in files:
            # Without a date, the same numbers are the same file.
            metadata = {"Date": None} if file.suffix == ".svg" else None
            figure.savefig(file, format=file.suffix[1:], dpi=160, transparent=True, metadata=metadata)


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other one improves on, from the least biased to the most accurate."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.bias, -point.accuracy)):
        if not best or point.accuracy > best[-1].accuracy:
            best.append(point)
    return best


def _frame(axes: Axes, title: str, bias_name: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(f"{bias_name}, on all test rows together (less is fairer)")
    below = {"xytext": (0, -38), "xycoords": "axes fraction", "textcoords": "offset points", "va": "top"}
    axes.annotate(KEY, (0, 0), **below, fontsize=8, color=INK)  # type: ignore[arg-type]
    axes.set_ylabel("accuracy, %")
    axes.tick_params(colors=INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def _limits(axes: Axes, points: Sequence[Point]) -> None:
    biases, accuracies = [point.bias for point in points], [100 * point.accuracy for point in points]
    for set_limits, values in ((axes.set_xlim, biases), (axes.set_ylim, accuracies)):
        margin = 0.12 * (max(values) - min(values)) or 0.1 * abs(values[0]) or 1.0
        set_limits(max(min(values) - margin, -margin / 4), max(values) + margin)


def _frontiers(axes: Axes, points: Sequence[Point]) -> list[Segment]:
    """Two staircases: among those that predict without the group, and among all, where that is another one."""
    alone, everybody = frontier([point for point in points if not point.by_group]), frontier(points)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    drawn: list[Segment] = []
    for best, style in ((alone, "-"), (everybody, ":")):
        if best and (style == "-" or best != alone):
            biases = [best[0].bias, *(point.bias for point in best), max(right, best[-1].bias)]
            accuracies = [bottom, *(100 * point.accuracy for point in best), 100 * best[-1].accuracy]
            axes.step(biases, accuracies, where="post", color=INK, linewidth=1, linestyle=style, zorder=1)
            for (x0, y0), (x1, y1) in pairwise(zip(biases, accuracies, strict=True)):
                drawn += [(x0, y0, x1, y0), (x1, y0, x1, y1)]
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    return drawn


def _mark(axes: Axes, point: Point) -> list[Segment]:
    x, y, dx, dy = point.bias, 100 * point.accuracy, _bar(point.bias_deviation), _bar(100 * point.accuracy_deviation)
    axes.errorbar(
        x,
        y,
        xerr=dx,
        yerr=dy,
        fmt="D" if point.by_group else "o",
        color=_colour(point),
        markerfacecolor="none" if point.by_group else _colour(point),
        markersize=7,
        elinewidth=1,
        zorder=2,
    )
    return [(x - dx, y, x + dx, y), (x, y - dy, x, y + dy)]


def _bar(deviation: float) -> float:
    return deviation if deviation == deviation else 0.0


def _colour(point: Point) -> str:
    return BY_GROUP if point.by_group else PLAIN


def _is_far(point: Point, points: Sequence[Point]) -> bool:
    """Only what is worse than the others: what is better is what one looks for."""

    def far(value: float, values: list[float]) -> bool:
        middle = median(values)
        return value - middle > FAR * median(abs(one - middle) for one in values)

    return len(points) > 4 and (
        far(point.bias, [one.bias for one in points]) or far(-point.accuracy, [-one.accuracy for one in points])
    )


def _at_the_edge(axes: Axes, point: Point) -> tuple[str, float, float, str]:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    bias, accuracy = min(max(point.bias, left), right), min(max(100 * point.accuracy, bottom), top)
    pointing = "v" if accuracy == bottom else ">"
    axes.plot(bias, accuracy, marker=pointing, color=_colour(point), markersize=8, clip_on=False, zorder=3)
    return f"{point.label} ({100 * point.accuracy:.1f} %, {point.bias:.3f})", bias, accuracy / 100, _colour(point)

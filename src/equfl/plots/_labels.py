"""Words beside points, so that no two of them and no point lie on each other."""

from collections.abc import Sequence
from itertools import product
from math import cos, pi, sin

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

Label = tuple[str, float, float, str]
"""Words, the point that they belong to (bias, accuracy as a share), their colour."""

Segment = tuple[float, float, float, float]
"""A level or upright line that words should not cross: from (bias, accuracy in per cent) to the same."""

RADII = (9.0, 15.0, 24.0, 36.0, 52.0, 72.0)
DIRECTIONS = tuple(turn * pi / 8 for turn in (0, 1, 15, 2, 14, 4, 12, 8, 7, 9, 6, 10, 3, 13, 5, 11))
"""To the right first, where one reads on."""
POINT = 6.0
"""Half the width that is kept free around a point, in pixels at 100 per inch."""
LINE = 1.5
"""The same around a line."""


def place_labels(axes: Axes, labels: Sequence[Label], lines: Sequence[Segment]) -> None:
    """Put every label at the nearest place that is free, with a thin line to its point where that is far."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    scale = figure.dpi / 100
    points = [tuple(axes.transData.transform((x, 100 * y))) for _, x, y, _ in labels]
    taken = [Bbox.from_extents(x - r, y - r, x + r, y + r) for x, y in points for r in (POINT * scale,)]
    for x0, y0, x1, y1 in lines:
        ends = axes.transData.transform([(x0, y0), (x1, y1)])
        (left, low), (right, high) = ends.min(axis=0) - LINE * scale, ends.max(axis=0) + LINE * scale
        taken.append(Bbox.from_extents(left, low, right, high))
    frame = axes.get_window_extent().expanded(1.02, 1.02)
    for (words, x, y, colour), (px, py) in zip(labels, points, strict=True):
        text = axes.annotate(words, (x, 100 * y), xytext=(0, 0), textcoords="offset points", color=colour, fontsize=9)
        extent = text.get_window_extent()
        width, height = extent.width, extent.height

        places = [
            (radius, _beside(px, py, radius * scale, angle, width, height))
            for radius, angle in product(RADII, DIRECTIONS)
        ]
        radius, best = min(places, key=lambda place: _cost(place[0], place[1], taken, frame))
        taken.append(best)
        text.set_position((72 * (best.x0 - px) / figure.dpi, 72 * (best.y0 - py) / figure.dpi))
        if radius > RADII[1]:
            anchor = (min(max(px, best.x0), best.x1), min(max(py, best.y0), best.y1))
            ends = axes.transData.inverted().transform([(px, py), anchor])
            axes.plot(ends[:, 0], ends[:, 1], color=colour, linewidth=0.6, alpha=0.6, zorder=1, clip_on=False)


def _beside(x: float, y: float, radius: float, angle: float, width: float, height: float) -> Bbox:
    """The words' box in that direction, its nearest side about so far from the point."""
    centre_x, centre_y = x + (radius + width / 2) * cos(angle), y + (radius + height / 2) * sin(angle)
    return Bbox.from_bounds(centre_x - width / 2, centre_y - height / 2, width, height)


def _cost(radius: float, box: Bbox, taken: Sequence[Bbox], frame: Bbox) -> float:
    covered = sum(
        common.width * common.height for other in taken if (common := Bbox.intersection(box, other)) is not None
    )
    inside = Bbox.intersection(box, frame)
    outside = box.width * box.height - (inside.width * inside.height if inside else 0)
    return float(radius + 10 * covered + 10 * outside)

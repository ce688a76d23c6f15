"""The picture of accuracy against bias: who is on the frontier, and that words can be read."""

from dataclasses import replace
from itertools import combinations
from math import nan

from matplotlib.figure import Figure

from equfl.plots._labels import place_labels
from equfl.plots.frontier import Point, draw, frontier

POINTS = [
    Point("fedavg", 0.21, 0.785, 0.01, 0.001, by_group=False),
    Point("fair", 0.02, 0.780, 0.01, 0.001, by_group=False),
    Point("fair, but worse", 0.03, 0.779, 0.01, 0.001, by_group=False),
    Point("knows the group", 0.01, 0.784, 0.01, 0.001, by_group=True),
    Point("one seed", 0.05, 0.78, nan, nan, by_group=False),
    Point("far", 0.04, 0.50, 0.01, 0.001, by_group=False),
]


def test_on_the_frontier_is_whom_nobody_improves_on():
    assert [point.label for point in frontier(POINTS)] == ["knows the group", "fedavg"]
    assert [point.label for point in frontier([one for one in POINTS if not one.by_group])] == ["fair", "fedavg"]


def test_the_picture_is_written_and_is_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        files = [tmp_path / f"{name}.svg", tmp_path / f"{name}.png"]
        draw(POINTS, files, title="toy", bias_name="equalized odds")
        assert all(file.stat().st_size > 5000 for file in files)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_one_point_and_points_that_agree_can_be_drawn(tmp_path):
    one = POINTS[0]
    for number, points in enumerate(([one], [one, replace(one, label="other")], [replace(one, bias=0.0)])):
        draw(points, [tmp_path / f"{number}.svg"], title="toy", bias_name="equalized odds")
        assert (tmp_path / f"{number}.svg").stat().st_size > 5000


def test_no_two_labels_lie_on_each_other():
    figure = Figure(figsize=(8, 5), dpi=100)
    axes = figure.add_subplot()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 100)
    place_labels(axes, [(f"method number {n}", 0.5 + n / 500, 0.5 + (n % 3) / 500, "black") for n in range(8)], [])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 8
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))

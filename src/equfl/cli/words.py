"""How numbers and names are spelled on the screen."""

from collections.abc import Mapping
from typing import Any, TypeGuard

UNKNOWN = "–"
"""Where nothing can be said."""

MEANINGFUL = 20
"""With a larger ε, whoever sees the run can be e^ε times as sure of a row as before: that is no promise any more."""


def spaced(name: str) -> str:
    """A component's name as words."""
    return name.replace("_", " ")


def percent(accuracy: float | None) -> str:
    return f"{100 * accuracy:.2f} %" if _known(accuracy) else UNKNOWN


def bias(value: float | None) -> str:
    return f"{value:.4f}" if _known(value) else UNKNOWN


def points(change: float | None) -> str:
    """A change of the accuracy, in points of a hundred."""
    return f"{_signed(100 * change, 2)} pt" if _known(change) else UNKNOWN


def ratio(value: float | None) -> str:
    """A number of about one."""
    return _signed(value, 2).removeprefix("+") if _known(value) else UNKNOWN


def bias_change(change: float | None) -> str:
    return _signed(change, 4) if _known(change) else UNKNOWN


def privacy(guarantee: Mapping[str, Any]) -> str:
    """What a run guarantees, and whether that is worth something."""
    if guarantee["epsilon"] is None:
        return f"none, because {guarantee['obstacle']}"
    whom = {"row": "every row", "client": "every client with all its rows"}[guarantee["unit"]]
    worth = " (too much to mean anything)" if guarantee["epsilon"] > MEANINGFUL else ""
    return f"ε = {epsilon(guarantee['epsilon'])}{worth} at δ = {guarantee['delta']:g}, for {whom}"


def epsilon(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}".replace(",", " ")


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and value == value


def _signed(value: float, digits: int) -> str:
    # A true minus sign, as wide as the plus; and no sign for what rounds to nothing.
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if any(digit in text for digit in "123456789") else f"{0:.{digits}f}"

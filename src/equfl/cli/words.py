"""How numbers and names are spelled on the screen."""

from typing import TypeGuard

UNKNOWN = "–"
"""Where nothing can be said."""


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


def bias_change(change: float | None) -> str:
    return _signed(change, 4) if _known(change) else UNKNOWN


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and value == value


def _signed(value: float, digits: int) -> str:
    # A true minus sign, as wide as the plus; and no sign for what rounds to nothing.
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if any(digit in text for digit in "123456789") else f"{0:.{digits}f}"

"""What several targets cost each other: each one solved alone, beside all of them together."""

from collections.abc import Mapping
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from equfl.calibration.problem import Problem, accuracy_of
from equfl.core.arrays import Counts
from equfl.fairness.base import GroupNotion

TOGETHER = "together"
ACCURACY = "accuracy"


def tradeoff(problem: Problem, allowed: Float[Tensor, " gaps"], together: Counts) -> dict[str, float]:
    """The expected accuracy and gaps of the joint solution and of each notion's own: ``tradeoff/AIM/WHAT``.

    Nothing for a single notion.
    """
    if len(problem.notions) < 2:
        return {}
    expected = {TOGETHER: together}
    first = 0
    for notion in problem.notions:
        gaps = len(notion.gaps(together).values)
        part = allowed[first : first + gaps]
        expected[notion.name] = replace(problem, notions=(notion,)).answer(part).expected
        first += gaps
    return {
        f"tradeoff/{aim}/{what}": value for aim, tables in expected.items() for what, value in _judged(tables, problem)
    }


def tradeoff_lines(told: Mapping[str, float]) -> list[str]:
    """The trade-off out of a round's diagnostics, a line for each aim."""
    aims: dict[str, list[str]] = {}
    for name, value in told.items():
        kind, _, rest = name.partition("/")
        if kind == "tradeoff":
            aim, _, what = rest.partition("/")
            words = f"accuracy {100 * value:.1f} %" if what == ACCURACY else f"{what.replace('_', ' ')} {value:.3f}"
            aims.setdefault(aim, []).append(words)
    named = {aim: "all targets together" if aim == TOGETHER else f"{aim.replace('_', ' ')} alone" for aim in aims}
    return [f"Expected of {named[aim]}: {', '.join(words)}" for aim, words in aims.items()]


def _judged(tables: Counts, problem: Problem) -> list[tuple[str, float]]:
    return [
        (ACCURACY, accuracy_of(tables).item()),
        *((notion.name, _largest(notion, tables)) for notion in problem.notions),
    ]


def _largest(notion: GroupNotion, tables: Counts) -> float:
    return notion.gaps(tables).largest()

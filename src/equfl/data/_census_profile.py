"""A census profile: counts of people and a model of their label, and rows drawn from it.

The file is JSON and holds figures of many people each, never a person:

- ``states``: the parties, and how many people were counted in each;
- ``variables``: the codes of each variable. One that is ``of`` another is a coarser view of it; its ``groups`` say
  where each code of the other belongs;
- ``steps``: a row is drawn one variable after another. ``counts`` has one line per combination of the variables that
  are ``given``, the last of them changing fastest; ``by_state``, where there is one, has one line per state. A line is
  the position of its first figure that is not 0, and the figures from there to the last one that is not 0;
- ``label``: the log-odds of a positive label are the sum of the terms' ``weights``, which are laid out like counts.

A count is rounded to a multiple of ``smallest`` and stands in that unit; it is 0 where it was less, and a code that
fewer people have is not listed. A weight is 0 where it would describe fewer than ``smallest_weighed`` people.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Codes = Int[Tensor, " rows"]
"""Of each row, the position of its code among those of the variable."""
Uniform = Callable[[str], Float[Tensor, " rows"]]
"""Random numbers between 0 and 1, one per row, by purpose."""

STATE = "ST"
BORROWED = 20.0
"""How many people each line of counts borrows from the coarser table, to fill in what rounding took away."""
FITTING = 6
"""Rounds of proportional fitting, after which the states' shares are met to far less than sampling error."""


@dataclass(frozen=True)
class Variable:
    """A column of the table, or a coarser view of one."""

    codes: tuple[int, ...]
    of: str = ""
    """The column of which this is a view; empty for a column."""
    groups: tuple[int, ...] = ()
    """For each code of that column, the position of its group in ``codes``."""


@dataclass(frozen=True)
class Step:
    """One variable, drawn given some that are drawn already."""

    draws: str
    given: tuple[str, ...]
    counts: Float[Tensor, "..."]
    """People by the variables given and, last, the one drawn."""
    by_state: Float[Tensor, "states codes"] | None
    """People by state; ``None`` where states differ through the variables given only."""


@dataclass(frozen=True)
class Term:
    """A part of the log-odds of a positive label."""

    of: tuple[str, ...]
    weights: Float[Tensor, "..."]


@dataclass(frozen=True)
class Profile:
    """All that is known of the people whose like are drawn."""

    source: str
    smallest: int
    states: Mapping[str, int]
    variables: Mapping[str, Variable]
    steps: tuple[Step, ...]
    label: tuple[Term, ...]

    def draw(self, sizes: Sequence[int], uniform: Uniform) -> tuple[dict[str, Codes], Codes]:
        """So many rows of each state, state after state: what was drawn of each variable, and the labels."""
        rows = {STATE: torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))}
        for step in self.steps:
            lines = _combined(rows, step.given, step.counts.shape[:-1])
            shares = conditional(step.counts).reshape(-1, step.counts.shape[-1])
            if step.by_state is not None:
                shares, lines = _by_state(shares, lines, step.by_state, rows[STATE])
            rows[step.draws] = _pick(shares, lines, uniform(step.draws))
            for name, view in self.variables.items():
                if view.of == step.draws:
                    rows[name] = torch.tensor(view.groups)[rows[step.draws]]
        odds = torch.zeros(sum(sizes), dtype=torch.float64)
        for term in self.label:
            odds += term.weights.flatten()[_combined(rows, term.of, term.weights.shape)]
        return rows, (uniform("label") < torch.sigmoid(odds)).long()


def read(path: Path) -> Profile:
    """The profile in the file."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    variables = {
        name: Variable(tuple(about["codes"]), about.get("of", ""), tuple(about.get("groups", ())))
        for name, about in plain["variables"].items()
    }
    sizes = {STATE: len(plain["states"])} | {name: len(variable.codes) for name, variable in variables.items()}

    def table(lines: list[list[Any]], *over: str) -> Tensor:
        shape = [sizes[name] for name in over]
        whole = [[0.0] * int(first) + figures for first, *figures in (line or [0] for line in lines)]
        width = shape[-1] if shape else 1
        filled = [line + [0.0] * (width - len(line)) for line in whole]
        return torch.tensor(filled, dtype=torch.float64).reshape(shape)

    unit = plain["smallest"]
    return Profile(
        source=plain["source"],
        smallest=unit,
        states={state: people * unit for state, people in plain["states"].items()},
        variables=variables,
        steps=tuple(
            Step(
                step["draws"],
                tuple(step["given"]),
                table(step["counts"], *step["given"], step["draws"]) * unit,
                table(step["by_state"], STATE, step["draws"]) * unit if "by_state" in step else None,
            )
            for step in plain["steps"]
        ),
        label=tuple(Term(tuple(term["of"]), table(term["weights"], *term["of"])) for term in plain["label"]),
    )


def conditional(counts: Float[Tensor, "*given codes"]) -> Float[Tensor, "*given codes"]:
    """The shares of the codes in each line, given all but the last axis.

    A line with few people leans on the coarser table that leaves out the last of the variables given, and that table
    on the next coarser one, down to the table given the first variable alone, which is taken as it is.
    """
    totals = counts.sum(dim=-1, keepdim=True)
    if counts.ndim <= 2:
        return counts / totals
    coarser = conditional(counts.sum(dim=-2)).unsqueeze(-2)
    return (counts + BORROWED * coarser) / (totals + BORROWED)


def _combined(rows: Mapping[str, Codes], names: Sequence[str], sizes: Sequence[int]) -> Codes:
    """The number of each row's line in a table over these variables."""
    lines = torch.zeros_like(rows[STATE])
    for name, size in zip(names, sizes, strict=True):
        lines = lines * size + rows[name]
    return lines


def _by_state(shares: Tensor, lines: Codes, wanted: Tensor, states: Codes) -> tuple[Tensor, Codes]:
    """The shares tilted state by state so that its rows will have the wanted shares, and each row's line among them.

    Each code is made likelier or less likely by the same factor in all lines of the state (iterative proportional
    fitting), so that what depends on what stays as it is in the whole country.
    """
    wanted = wanted / wanted.sum(dim=1, keepdim=True)
    lines = states * len(shares) + lines
    people = torch.bincount(lines, minlength=len(wanted) * len(shares)).to(wanted).reshape(len(wanted), 1, -1)
    people = people / people.sum(dim=2, keepdim=True).clamp(min=1)
    tilted = shares.expand(len(wanted), -1, -1)
    for _ in range(FITTING):
        reached = (people @ tilted).squeeze(1)
        tilted = tilted * (wanted / reached.where(reached > 0, 1)).unsqueeze(1)
        tilted = tilted / tilted.sum(dim=2, keepdim=True).clamp(min=torch.finfo(tilted.dtype).tiny)
    # A line whose codes do not occur in the state at all keeps the country's shares.
    return tilted.where(tilted.sum(dim=2, keepdim=True) > 0, shares).flatten(end_dim=1), lines


def _pick(shares: Tensor, lines: Codes, uniform: Tensor) -> Codes:
    """For each row, a code of its line at random: one search in all lines' running sums, laid end to end."""
    running = shares.cumsum(dim=1)
    running = running / running[:, -1:] + torch.arange(len(shares)).unsqueeze(1)
    # A number just below 1 may become the next line's 0 when the line's number is added to it.
    below = torch.nextafter(lines + 1.0, lines.to(uniform))
    places = torch.searchsorted(running.flatten(), torch.minimum(lines + uniform, below), right=True)
    return places - lines * shares.shape[1]

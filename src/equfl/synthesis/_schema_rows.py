"""Synthetic rows that obey the schema: every categorical column is one code, or a blend of codes that sums to one."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from equfl.core.arrays import Groups, Inputs
from equfl.core.schema import Schema
from equfl.synthesis._groups import set_codes


@dataclass(frozen=True)
class SchemaRows:
    """What is optimised is ``raw``, of the inputs' shape; ``inputs()`` is what a network sees.

    A numeric input is its raw number. The inputs of a categorical column are ``off + (on - off) * softmax(raw)``. The
    sensitive columns hold the codes of the row's group, whatever raw says. Without columns (images) all inputs
    are free.
    """

    raw: Tensor
    groups: Groups
    schema: Schema

    @classmethod
    def draw(cls, groups: Groups, schema: Schema, sharpness: float, generator: torch.Generator) -> "SchemaRows":
        """Random rows of these groups: numbers ``N(0, 1)``; logits ``sharpness * N(0, 1)``, nearly one code."""
        raw = torch.randn(len(groups), *schema.shape, generator=generator)
        rows = cls(raw, groups, schema)
        for start, stop in rows.blocks:
            raw[:, start:stop] *= sharpness
        return rows

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """First and last input (exclusive) of every categorical column that is optimised."""
        sensitive = self.schema.sensitive if self.schema.group_codes else ()
        return tuple((c.start, c.stop) for c in self.schema.columns if not c.numeric and c.name not in sensitive)

    @cached_property
    def _fixed(self) -> tuple[Tensor, Tensor] | None:
        if not self.schema.group_codes:
            return None
        blank = torch.zeros(len(self.groups), *self.schema.shape)
        written, positions = set_codes(blank, self.groups.cpu(), self.schema)
        return positions.to(self.raw.device), written[:, positions].to(self.raw)

    def inputs(self) -> Inputs:
        """The rows as a network sees them; differentiable in ``raw``."""
        if not self.schema.columns:
            return self.raw
        off, on = self.raw.new_tensor(self.schema.codes_off), self.raw.new_tensor(self.schema.codes_on)
        inputs = self.raw.clone()
        for start, stop in self.blocks:
            codes = slice(start, stop)
            inputs[:, codes] = off[codes] + (on - off)[codes] * self.raw[:, codes].softmax(dim=1)
        if self._fixed is not None:
            positions, values = self._fixed
            inputs[:, positions] = values
        return inputs

    @torch.no_grad()
    def clamp(self, limit: float) -> None:
        """Keep the free numbers between minus and plus the limit; logits are left alone."""
        if not self.schema.columns:
            self.raw.clamp_(-limit, limit)
        for column in self.schema.columns:
            if column.numeric:
                self.raw[:, column.start].clamp_(-limit, limit)

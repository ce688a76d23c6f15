"""Synthetic rows that obey the schema: every categorical column is one code, or a blend of codes that sums to one."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from equfl.core.arrays import Groups, Inputs
from equfl.core.schema import Column, Schema
from equfl.synthesis._groups import set_codes

EXACT = 1e6
"""Logits spread this far make one code certain."""


@dataclass(frozen=True)
class SchemaRows:
    """What is optimised is ``raw``; ``inputs()`` is what a network sees.

    A numeric input is its raw number. The inputs of a categorical column are ``off + (on - off) * softmax(raw)``. The
    sensitive columns hold the codes of the row's group, whatever raw says. Without columns (images) all inputs
    are free.

    Of a table, ``raw`` holds one input per row and one sample per column: a softmax over codes is several times faster
    that way round. Of anything else it has the inputs' shape.
    """

    raw: Tensor
    groups: Groups
    schema: Schema

    @classmethod
    def draw(cls, groups: Groups, schema: Schema, sharpness: float, generator: torch.Generator) -> "SchemaRows":
        """Random rows of these groups: numbers ``N(0, 1)``; logits ``sharpness * N(0, 1)``, nearly one code."""
        raw = torch.randn(len(groups), *schema.shape, generator=generator)
        rows = cls(raw.T.contiguous() if schema.columns else raw, groups, schema)
        for column in schema.columns:
            if rows.blends(column):
                rows.raw[column.start : column.stop] *= sharpness
        return rows

    def to(self, like: Tensor) -> "SchemaRows":
        """The same rows where that tensor is."""
        return SchemaRows(self.raw.to(like), self.groups.to(like.device), self.schema)

    def blends(self, column: Column) -> bool:
        """Whether the column is categorical and optimised."""
        return not column.numeric and not (self.schema.group_codes and column.name in self.schema.sensitive)

    @cached_property
    def _written(self) -> Tensor:
        """The inputs as far as they are decided by the groups, one input per row."""
        blank = torch.zeros(len(self.groups), *self.schema.shape)
        written, _ = set_codes(blank, self.groups.cpu(), self.schema)
        return written.T.to(self.raw)

    def inputs(self) -> Inputs:
        """The rows as a network sees them; differentiable in ``raw``."""
        if not self.schema.columns:
            return self.raw
        # Split at once: the gradient of a slice is as large as the whole, that of a split is its parts put together.
        parts = self.raw.split([column.stop - column.start for column in self.schema.columns])
        return torch.cat([self._column(*pair) for pair in zip(self.schema.columns, parts, strict=True)]).T

    def _column(self, column: Column, raw: Tensor) -> Tensor:
        if self.schema.group_codes and column.name in self.schema.sensitive:
            return self._written[column.start : column.stop]
        if column.numeric:
            return raw
        shares = raw.softmax(dim=0)
        if set(column.off) == {0.0} and set(column.on) == {1.0}:
            return shares
        off, on = (self.raw.new_tensor(codes).unsqueeze(1) for codes in (column.off, column.on))
        return torch.addcmul(off, on - off, shares)

    @torch.no_grad()
    def clamp(self, limit: float) -> None:
        """Keep the free numbers between minus and plus the limit; logits are left alone."""
        if not self.schema.columns:
            self.raw.clamp_(-limit, limit)
        for column in self.schema.columns:
            if column.numeric:
                self.raw[column.start].clamp_(-limit, limit)

"""Which group a synthetic row belongs to: assigning it, writing it into the inputs, reading it back."""

import torch
from torch import Tensor

from equfl.core.arrays import Groups, Inputs, Labels, SoftGroups
from equfl.core.schema import Schema

SOFTNESS = 0.1
"""How far apart two codes must be before the row counts as a member of one group only."""


def balanced_cells(rows: int, classes: int, groups: int, generator: torch.Generator) -> tuple[Labels, Groups]:
    """Labels and groups such that every (label, group) cell gets the same number of rows, give or take one."""
    cells = torch.arange(rows) % (classes * groups)
    cells = cells[torch.randperm(rows, generator=generator)]
    return cells // groups, cells % groups


def set_codes(inputs: Inputs, groups: Groups, schema: Schema) -> tuple[Inputs, Tensor]:
    """The inputs with the codes of each row's group written in, and the positions that hold them."""
    positions = torch.tensor(schema.sensitive_inputs)
    off, on = torch.tensor(schema.codes_off), torch.tensor(schema.codes_on)
    written = inputs.clone()
    written[:, positions] = off[positions]
    for group, codes in enumerate(schema.group_codes):
        for code in codes:
            written[groups == group, code] = on[code]
    return written, positions


def decoded_groups(inputs: Inputs, schema: Schema) -> SoftGroups:
    """Soft membership in each group, read off the inputs that hold the codes.

    Each code is brought back to the scale on which 0 is absent and 1 present; a group's score is the mean of its codes,
    and ``membership = softmax(score / 0.1)``.
    """
    off, on = inputs.new_tensor(schema.codes_off), inputs.new_tensor(schema.codes_on)
    presence = (inputs - off) / (on - off)
    scores = torch.stack([presence[:, list(codes)].mean(dim=1) for codes in schema.group_codes], dim=1)
    return (scores / SOFTNESS).softmax(dim=1)

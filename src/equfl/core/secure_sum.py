"""Sums that a server can read without reading what was added up (Bonawitz et al., 2017).

A client writes its numbers in fixed point, as whole numbers modulo 2^64, and adds a mask per other client: random
numbers from a seed that only the two know, which one of them adds and the other subtracts. To the server each answer is
noise; in the sum the masks cancel, exactly, because whole numbers are added. So adding up without masks gives the same
bits, which is what the simulator does; ``masked`` is the protocol itself, and a test holds the two together.

How seeds are agreed upon, and what is done about clients who vanish between masking and adding, is a matter of the
network, and no part of this.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equfl.core.errors import CohortError
from equfl.core.protocol import Cohort
from equfl.core.vector import Buffers

STEP = 2.0**-24
"""Fixed point: numbers are rounded to multiples of this."""

Fixed = Int[Tensor, "..."]
"""Numbers in fixed point."""


def fixed(values: Tensor, *, clients: int) -> Fixed:
    """The numbers in fixed point, refused where so many clients' sum could run over."""
    steps = (values.double() / STEP).round()
    largest = 2.0**62 / max(1, clients)
    if not (steps.abs() <= largest).all():
        raise CohortError(
            f"a number of size {values.double().abs().max().item():g} to be summed in secret",
            wanted=f"finite numbers of at most {largest * STEP:g}",
            remedy="Lower training.learning_rate and look for extreme values in the data, or turn secure_sum off",
        )
    return steps.long()


def masked(own: Fixed, client: int, ids: Sequence[int], shared: Callable[[int, int], torch.Generator]) -> Fixed:
    """What a client sends: its numbers under one mask per other participant.

    ``shared`` gives two clients, the smaller number first, the generator that only they have.
    """
    for other in ids:
        if other != client:
            generator = shared(min(client, other), max(client, other))
            mask = torch.randint(-(2**63), 2**63 - 1, own.shape, generator=generator)
            own = own + mask if client < other else own - mask
    return own


def opened(total: Fixed) -> Float[Tensor, "..."]:
    """The number that a sum in fixed point stands for."""
    return total.double() * STEP


def secure_total(rows: Tensor) -> Float[Tensor, "..."]:
    """The sum over clients, who are the rows, as the server reads it."""
    return opened(fixed(rows, clients=len(rows)).sum(dim=0))


def summed(cohort: Cohort, *, sent: Buffers) -> Cohort:
    """All that the server gets to see of a cohort: one row, the sum; and who took part.

    Updates are added up by share, so that ``shares @ updates`` is what it was; reports are added up as they are.
    Statistics in buffers are averages already; counters in them (batch norm's steps) are no sums, and stay as they were
    sent out, which training does not mind.
    """
    shares, updates = cohort.shares, cohort.updates
    return replace(
        cohort,
        updates=secure_total(shares.double().unsqueeze(1) * updates.double()).to(updates).unsqueeze(0),
        shares=shares.new_ones(1),
        rows=(sum(cohort.rows),),
        buffers={name: value if value.is_floating_point() else sent[name] for name, value in cohort.buffers.items()},
        reports={name: secure_total(values).unsqueeze(0) for name, values in cohort.reports.items()},
    )

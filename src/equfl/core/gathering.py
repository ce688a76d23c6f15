"""From what the clients send back to the cohort that the server's step sees."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from equfl.core.arrays import Updates, Vector
from equfl.core.errors import CohortError
from equfl.core.protocol import Cohort, ServerState


def stacked(ids: Sequence[int], vectors: Sequence[Vector], length: int) -> Updates:
    """Local models that came one by one as rows; one of another length is refused, and its client named."""
    for client, vector in zip(ids, vectors, strict=True):
        if vector.shape != (length,):
            raise _wrong_length(f"an update of shape {tuple(vector.shape)} from client {client}", length)
    return torch.stack(list(vectors))


def gather(
    state: ServerState,
    ids: Sequence[int],
    vectors: Updates,
    sizes: Sequence[int] | Sequence[float],
    *,
    learning_rate: float,
    buffers: Mapping[str, Tensor],
    reports: Mapping[str, Tensor],
) -> Cohort:
    """The cohort: the clients whose updates can be used, and their shares among themselves.

    A row of ``vectors``, ``buffers`` and ``reports`` belongs to the client at that place of ``ids``. An update or a
    buffer with NaN or infinity disqualifies its client altogether, before any rule and any method sees it. Reports may
    hold NaN: some methods say by it that a client has nothing to report.
    """
    if vectors.shape[1] != len(state.vector):
        raise _wrong_length(f"updates of {vectors.shape[1]} parameters", len(state.vector))
    if min(sizes) <= 0:
        client = ids[min(range(len(ids)), key=lambda place: sizes[place])]
        raise CohortError(
            f"client {client} says that it trained on {min(sizes)} rows",
            wanted="more than none from each participant",
            remedy="Leave clients without rows out of the federation",
        )
    updates = (state.vector - vectors) / learning_rate
    usable = updates.isfinite().all(dim=1)
    for value in buffers.values():
        usable &= value.reshape(len(ids), -1).isfinite().all(dim=1)
    counts = torch.tensor(sizes, dtype=torch.float64, device=updates.device)
    if not usable.all():
        kept = usable.nonzero().flatten().tolist()
        ids, sizes = [ids[place] for place in kept], [sizes[place] for place in kept]
        updates, counts = updates[usable], counts[usable]
        buffers = {name: value[usable] for name, value in buffers.items()}
        reports = {name: value[usable] for name, value in reports.items()}
    shares = (counts / counts.sum()).to(updates)
    averaged = {name: _averaged(value, shares) for name, value in buffers.items()} if ids else {}
    return Cohort(tuple(ids), updates, shares, tuple(map(float, sizes)), averaged, reports)


def _averaged(rows: Tensor, shares: Tensor) -> Tensor:
    # Statistics are averaged by share; batch norm's step counter is a count, of which the largest is kept.
    return torch.einsum("n,n...->...", shares, rows) if rows.is_floating_point() else rows.amax(dim=0)


def _wrong_length(found: str, length: int) -> CohortError:
    return CohortError(
        found,
        wanted=f"the {length} parameters of the model that was sent out",
        remedy="Give every client the model of the run",
    )

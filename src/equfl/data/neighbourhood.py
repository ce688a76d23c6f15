"""The nearest rows of every test row, among all rows and among the client's own: searched once, then kept."""

from dataclasses import replace

import torch
from torch.nn.functional import pad

from equfl.data.base import Federation, Progress


def with_neighbours(federation: Federation, *, progress: Progress = lambda task, done, total: None) -> Federation:
    """The federation with the neighbours that consistency compares.

    A client with fewer rows than neighbours are asked for has fewer: -1 fills up.
    """
    # The one thing that data asks of another room: what counts as near is for fairness to say, and the search brings
    # its own heavy library, which nobody needs who reads prepared rows.
    from equfl.fairness.neighbours import nearest

    pooled = nearest(federation.test.pooled.inputs, progress=progress)
    own = []
    for samples in federation.test:
        own.append(nearest(samples.inputs))
        progress("search the nearest rows of each client", len(own), len(federation.test))
    width = max(found.shape[1] for found in own)
    return replace(
        federation,
        test=replace(
            federation.test,
            pooled=replace(federation.test.pooled, neighbours=pooled),
            own_neighbours=torch.cat([pad(found, (0, width - found.shape[1]), value=-1) for found in own]),
        ),
    )

"""Consistency (Zemel et al., 2013): like rows are treated alike."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equfl.core.arrays import Logits, Losses, Neighbours, Predictions, Shares
from equfl.core.errors import DataError
from equfl.core.losses import cross_entropy
from equfl.core.samples import Samples, Shards
from equfl.fairness.base import RowNotion
from equfl.fairness.counts import client_of_row, demand_two_labels


@dataclass(frozen=True)
class Consistency(RowNotion, name="consistency"):
    """Every row is predicted as its nearest rows are.

    Symbols: ``N_z`` the neighbours of row z, as ``Samples.neighbours`` has them (by default the five nearest rows,
    z itself among them); how many they are is decided where they are searched.
    """

    symbol: ClassVar[str] = "CON"

    def terms(self, predictions: Predictions, samples: Samples) -> Losses:
        """``|prediction_z - mean_{q in N_z} prediction_q|`` of each row z; the metric is their mean."""
        demand_two_labels(samples.classes)
        return _gaps_to_neighbours(predictions.float(), _neighbours(samples))

    def by_client(self, predictions: Predictions, shards: Shards) -> Shares:
        """The metric among each client's own rows."""
        clients = client_of_row(shards)
        terms = self.terms(predictions, _among_own_rows(shards, clients))
        sizes = torch.tensor(shards.sizes, device=clients.device)
        means = torch.bincount(clients, weights=terms.double(), minlength=len(shards)) / sizes
        return means.where(sizes > 1, torch.nan)

    def loss(self, logits: Logits, samples: Samples) -> Tensor:
        """``mean_z |l_z - mean_{q in N_z} l_q|`` with the cross-entropy l.

        Losses are compared, not predictions: neighbours with different labels are pushed to different predictions.
        """
        return _gaps_to_neighbours(cross_entropy(logits, samples), _neighbours(samples)).mean()


def _gaps_to_neighbours(values: Float[Tensor, " samples"], neighbours: Neighbours) -> Float[Tensor, " samples"]:
    found: int | Tensor = neighbours.shape[1]
    if neighbours.numel() and neighbours.min() < 0:
        # Rows with fewer neighbours than others have -1 there: it reads the zero at the end and is not counted.
        found = (neighbours >= 0).sum(dim=1).clamp(min=1)
        neighbours = neighbours.where(neighbours >= 0, len(values))
    padded = torch.cat([values, values.new_zeros(1)])
    around = padded.index_select(0, neighbours.reshape(-1)).reshape(neighbours.shape)
    # The product with ones adds up short rows several times faster than 'sum' does.
    return (values - around @ values.new_ones(neighbours.shape[1]) / found).abs()


def _neighbours(samples: Samples) -> Neighbours:
    if samples.neighbours is None:
        raise _not_searched("samples without neighbours")
    return samples.neighbours


def _among_own_rows(shards: Shards, clients: Int[Tensor, " samples"]) -> Samples:
    own = shards.own_neighbours
    if own is None:
        raise _not_searched("clients without neighbours of their own")
    starts = torch.tensor(shards.starts[:-1], device=own.device)
    neighbours = own + starts[clients].unsqueeze(1)
    if own.numel() and own.min() < 0:
        neighbours = neighbours.where(own >= 0, -1)
    return replace(shards.pooled, neighbours=neighbours)


def _not_searched(found: str) -> DataError:
    return DataError(
        found,
        wanted="the nearest rows of every row, which consistency compares",
        remedy="Search them once with equfl.fairness.neighbours, or leave consistency out",
    )

"""DeepSight (Rieger et al., NDSS 2022).

Symbols: τ ``suspicious_share``, R ``draws``, S the length that updates are shortened to.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from equfl.aggregation._clustering import NOISE, apart, clusters
from equfl.aggregation._distances import row_norms
from equfl.aggregation._fingerprints import (
    bias_distances,
    division_differences,
    exceedings,
    normalised_energies,
    output_layer,
)
from equfl.aggregation.base import Aggregated, Aggregation
from equfl.core.arrays import Shares, Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import RoundContext
from equfl.core.vector import Network

SEEDS = 3
"""How many times random inputs are drawn for the comparison of predictions, each clustered by itself."""


@dataclass(frozen=True)
class DeepSight(Aggregation, name="deepsight"):
    """Cluster clients by what their models have learnt, drop clusters of suspicious ones, shorten the rest, average.

    A client is suspicious if its data seems to have few labels: its update moves at most half as many outputs as that
    of the median client. Clients are clustered (HDBSCAN) by three views of their models - which outputs moved, how
    predictions on random inputs changed, which way the last biases went - and then by how often these views set them
    apart. A cluster is dropped as a whole if at least a share τ of it is suspicious; a client in no cluster, if it is
    itself. Who is left is shortened to the median length of all updates, and averaged; shares are ignored.

    Where all are honest, clients with few labels among clients with many are dropped, although nothing is wrong with
    them. With two outputs nobody is ever suspicious, since both move alike, and the rule only shortens.

    Differs from the paper: random inputs are standard normal for tables; fewer of them; in rounds with fewer than four
    updates all are one cluster; and buffers are the global model's. It changes with the unit of the updates, because it
    looks at the models that they lead to.
    """

    suspicious_share: float = 1 / 3
    """A cluster with at least this share of suspicious clients is dropped."""
    draws: int = 2000
    """Random inputs on which predictions are compared, drawn three times; the paper takes 20 000."""
    neighbours: int = 3
    """HDBSCAN's min_samples, counted without the point itself."""
    on_empty: Literal["skip", "clipped_mean"] = "skip"
    """If everybody is dropped: leave the model as it is, or average all updates, shortened."""

    def __post_init__(self) -> None:
        if not 0 < self.suspicious_share <= 1 or self.draws < 1 or self.neighbours < 1:
            raise ConfigError(
                f"aggregation.suspicious_share = {self.suspicious_share}, aggregation.draws = {self.draws}, "
                f"aggregation.neighbours = {self.neighbours}",
                wanted="a share above 0 and at most 1, and at least one draw and one neighbour",
                remedy="The defaults are a third, 2000 and 3",
            )

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        # Distances that are all alike leave HDBSCAN to go by the order of the rows, so they get one of their own.
        norms = row_norms(updates)
        order = norms.argsort(stable=True)
        energies = normalised_energies(updates[order], context.network.layout)
        suspicious = _suspicious(exceedings(energies))
        labels = self._clusters(updates[order], energies, context)
        kept = torch.empty(len(updates), dtype=torch.bool, device=updates.device)
        kept[order] = _kept(labels, suspicious, self.suspicious_share)

        limit = norms.quantile(0.5)
        factors = (limit / norms).clamp(max=1).nan_to_num(nan=1.0)
        told = {
            "suspicious": float(suspicious.sum()),
            "clusters": float(labels.max() + 1),
            "limit": limit.item(),
            "shortened": float((norms > limit).sum()),
        }
        accepted = kept
        if not kept.any() and self.on_empty == "clipped_mean":
            accepted, told["empty"] = torch.ones_like(kept), 1.0
        weights = factors * accepted / max(1, int(accepted.sum()))
        return Aggregated(weights.to(updates.dtype) @ updates, accepted, told)

    def needs(self, clients: int) -> int:
        return 4

    def check(self, clients: int, network: Network) -> None:
        super().check(clients, network)
        if output_layer(network.layout) is None:
            raise ConfigError(
                "aggregation = 'deepsight' with a model without weights and biases in its last layer",
                wanted="a model that ends in a linear layer with biases, which the rule looks at",
                remedy="Choose another model or another rule",
            )

    def _clusters(self, updates: Updates, energies: Tensor, context: RoundContext) -> Tensor:
        """The final clusters: by the mean of three matrices that say who is apart from whom."""
        models = (context.vector - context.learning_rate * updates).to(context.vector)
        generator = context.generator("deepsight")
        shape = (self.draws, *context.schema.shape)
        # Pixels lie between 0 and 1; columns of a table are around 0 once they are standardised.
        fill = torch.randn if context.schema.columns or len(shape) == 2 else torch.rand
        by_prediction = []
        for _ in range(SEEDS):
            inputs = fill(shape, generator=generator).to(context.vector)
            points = division_differences(models, context.vector, context.buffers, context.network, inputs)
            by_prediction.append(apart(clusters(points, neighbours=self.neighbours)))
        by_energy = apart(clusters(energies, neighbours=self.neighbours))
        biases = bias_distances(updates, context.network.layout)
        by_bias = apart(clusters(biases, neighbours=self.neighbours, precomputed=True))
        mean = (by_energy + torch.stack(by_prediction).mean(dim=0) + by_bias) / 3
        return clusters(mean, neighbours=self.neighbours, precomputed=True, one_is_possible=True).to(updates.device)


def _suspicious(counts: Tensor) -> Tensor:
    return counts <= counts.double().quantile(0.5) / 2


def _kept(labels: Tensor, suspicious: Tensor, most: float) -> Tensor:
    kept = ~suspicious
    for label in labels.unique().tolist():
        members = labels == label
        if label != NOISE:
            kept[members] = suspicious[members].double().mean() < most
    return kept

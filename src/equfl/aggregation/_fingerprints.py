"""What DeepSight reads off a client's model: which outputs its data moved, and how.

Symbols: C outputs, h inputs of the last layer; E ``energies``, TE ``exceedings``, DDif ``division_differences``.
"""

import torch
from torch import Tensor

from equfl.core.arrays import Updates, Vector
from equfl.core.vector import Buffers, Layout, Network

SMALLEST = 1e-6
"""Least probability that is divided by."""


def output_layer(layout: Layout) -> tuple[slice, slice] | None:
    """Where the last layer's weights (C x h) and biases (C) lie in the vector; ``None`` if it has no such two."""
    matrices = [place for place, shape in enumerate(layout.shapes) if len(shape) == 2]
    if not matrices:
        return None
    last = matrices[-1]
    biases = [place for place in range(last + 1, len(layout.shapes)) if layout.shapes[place] == layout.shapes[last][:1]]
    return (layout.span(layout.names[last]), layout.span(layout.names[biases[0]])) if biases else None


def normalised_energies(updates: Updates, layout: Layout) -> Tensor:
    """NEUP, per client and output: ``E_ij^2 / sum_j E_ij^2`` with ``E_ij = |db_j| + sum_h |dW_jh|``.

    All outputs have the same where none has moved. The updates are differences up to one factor, which cancels.
    """
    weights, biases = _parts(updates, layout)
    energies = biases.abs() + weights.abs().sum(dim=2)
    if energies.shape[1] == 1:
        # A single logit z stands for the two logits 0 and z; the first never moves.
        energies = torch.cat([torch.zeros_like(energies), energies], dim=1)
    largest = energies.amax(dim=1, keepdim=True)
    energies = torch.where(largest > 0, energies / largest, torch.ones_like(energies))
    return energies.square() / energies.square().sum(dim=1, keepdim=True)


def exceedings(energies: Tensor) -> Tensor:
    """Per client, how many outputs have more than ``max(0.01, 1 / C)`` of the largest one's normalised energy."""
    threshold = max(0.01, 1 / energies.shape[1])
    return (energies > threshold * energies.amax(dim=1, keepdim=True)).sum(dim=1)


def division_differences(models: Updates, vector: Vector, buffers: Buffers, network: Network, inputs: Tensor) -> Tensor:
    """Per client and output, the mean over the inputs of its probability divided by the global model's."""

    def probabilities(model: Vector) -> Tensor:
        logits = network.forward(model, buffers, inputs)
        if logits.shape[1] == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
        return logits.softmax(dim=1)

    with torch.no_grad():
        before = probabilities(vector).clamp(min=SMALLEST)
        ratios = torch.stack([(probabilities(model) / before).mean(dim=0) for model in models])
    # A model that is so far off that it has no probabilities is as different as can be.
    return ratios.double().nan_to_num(nan=1 / SMALLEST)


def bias_distances(updates: Updates, layout: Layout) -> Tensor:
    """Cosine distances between the clients' changes of the last layer's biases; no change is like no change only."""
    _, biases = _parts(updates, layout)
    largest = biases.abs().amax(dim=1, keepdim=True)
    biases = torch.nn.functional.normalize(biases / largest.clamp(min=torch.finfo(torch.float64).tiny))
    still = largest == 0
    distances = (1 - biases @ biases.T).clamp(min=0).masked_fill(still & still.T, 0)
    return distances.fill_diagonal_(0)


def _parts(updates: Updates, layout: Layout) -> tuple[Tensor, Tensor]:
    spans = output_layer(layout)
    assert spans is not None, "checked before the first round"
    weights, biases = (updates[:, span].double() for span in spans)
    return weights.unflatten(1, (biases.shape[1], -1)), biases

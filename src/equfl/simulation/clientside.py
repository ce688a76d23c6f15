"""What happens at the clients beside training: the survey, their rows before the first round, and predictions."""

from dataclasses import replace

import torch

from equfl.core.arrays import Predictions
from equfl.core.protocol import ServerState
from equfl.core.samples import Samples, Shards, concatenate
from equfl.core.vector import Network
from equfl.data.base import Federation
from equfl.fairness.score import logits_of
from equfl.methods.base import Method, Tensors, changes


def surveyed(method: Method, train: Shards) -> dict[str, torch.Tensor]:
    """The sums over all clients of what the method asks about their rows, in double precision."""
    if not changes(method, "survey"):
        return {}
    answers = [method.survey(samples) for samples in train]
    return {name: torch.stack([answer[name].double() for answer in answers]).sum(dim=0) for name in answers[0]}


def prepared(method: Method, train: Shards, totals: Tensors) -> Shards:
    """The training rows as the method wants them."""
    if not changes(method, "prepare"):
        return train
    return concatenate([method.prepare(samples, totals) for samples in train])


def shown(method: Method, federation: Federation, totals: Tensors) -> Shards:
    """The test rows as the model sees them; what is measured on them stays as it is."""
    test = federation.test
    if not changes(method, "test_inputs"):
        return test
    pairs = zip(test, federation.train, strict=True)
    inputs = torch.cat([method.test_inputs(tested, train, totals) for tested, train in pairs])
    return replace(test, pooled=replace(test.pooled, inputs=inputs))


def predicted(method: Method, network: Network, state: ServerState, samples: Samples) -> Predictions:
    """What the method predicts for rows that are shown as the model sees them."""
    logits = logits_of(network, state.vector, state.buffers, samples.inputs)
    return method.predict(logits, samples, state.memory)

"""The toy federation: its law, its shapes, its sizes."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.data.toy import Toy


def fitted(samples: Samples) -> torch.Tensor:
    """Weights of a logistic model, the constant last."""
    weights = torch.zeros(samples.inputs.shape[1] + 1, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=100, line_search_fn="strong_wolfe")

    def loss():
        optimiser.zero_grad()
        value = binary_cross_entropy_with_logits(
            samples.inputs @ weights[:-1] + weights[-1], samples.labels.to(torch.float32)
        )
        value.backward()
        return value

    optimiser.step(loss)
    return weights.detach()


def gaps(bias: float) -> tuple[float, float]:
    """Demographic parity and equalized odds of a logistic model on the pooled test rows."""
    federation = Toy(rows=2000, bias=bias).load()
    weights = fitted(federation.train.pooled)
    test = federation.test.pooled
    positive = (test.inputs @ weights[:-1] + weights[-1] > 0).double()
    men = test.groups == 1

    def gap(where: torch.Tensor) -> float:
        return float(abs(positive[where & men].mean() - positive[where & ~men].mean()))

    return gap(torch.ones_like(men)), max(gap(test.labels == label) for label in (0, 1))


def test_the_planted_bias_shows_in_a_logistic_model():
    parity, odds = gaps(bias=1.0)
    assert 0.32 < parity < 0.40
    assert 0.16 < odds < 0.26


def test_without_bias_a_logistic_model_is_fair():
    assert max(gaps(bias=0.0)) < 0.03


def test_inputs_are_as_the_schema_says():
    federation = Toy().load()
    inputs, schema = federation.train.pooled.inputs, federation.schema
    assert inputs.shape == (1000, *schema.shape)
    assert schema.columns[-1].stop == schema.shape[0]
    for column in schema.columns[2:]:
        assert (inputs[:, column.start : column.stop].sum(dim=1) == 1).all()
    assert schema.sensitive_inputs == (5, 6)
    for group, (position,) in enumerate(schema.group_codes):
        assert ((inputs[:, position] == 1) == (federation.train.pooled.groups == group)).all()


def test_clients_grow_from_the_first_to_the_last_by_spread():
    federation = Toy(clients=3, rows=10, spread=1.0).load()
    assert federation.train.sizes == federation.test.sizes == (10, 15, 20)
    assert len(federation.clients) == 3


def test_the_same_seed_gives_the_same_rows_and_another_gives_others():
    one, same, other = (Toy(seed=seed).load().train.pooled.inputs for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_train_and_test_rows_are_different():
    federation = Toy().load()
    assert not torch.equal(federation.train.pooled.inputs, federation.test.pooled.inputs)


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"rows": 0}, {"spread": -1.0}])
def test_impossible_sizes_are_refused(wrong):
    with pytest.raises(ConfigError, match="at least one client"):
        Toy(**wrong)

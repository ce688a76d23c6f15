from dataclasses import replace

import pytest
import torch
from torch.nn.functional import one_hot

from equfl.core.errors import ConfigError
from equfl.methods.flinear import FLinear


@pytest.fixture
def people(rows):
    """Three groups, of which one input is the sum of something random and of the group."""
    samples = rows([[20, 11, 6], [5, 9, 14]])
    inputs = samples.inputs.double()
    inputs[:, 0] += 3 * samples.groups
    return replace(samples, inputs=torch.cat([inputs, one_hot(samples.groups, 3)], dim=1))


def mapped(samples, method=None, totals=None):
    return (method or FLinear()).prepare(samples, totals or {}).inputs


def test_no_input_is_correlated_with_any_group_any_more(people):
    dummies = one_hot(people.groups, 3).double()
    inputs = mapped(people)
    covariance = (dummies - dummies.mean(0)).T @ (inputs - inputs.mean(0)) / len(people)
    assert covariance.abs().max() < 1e-8


def test_it_is_the_residual_of_a_regression_on_the_groups_dummies(people):
    dummies = one_hot(people.groups, 3)[:, 1:].double()
    dummies, centred = dummies - dummies.mean(0), people.inputs - people.inputs.mean(0)
    residual = centred - dummies @ torch.linalg.lstsq(dummies, centred).solution
    torch.testing.assert_close(mapped(people), residual)
    torch.testing.assert_close(mapped(people, FLinear(remain=0.3)), residual + 0.3 * (centred - residual))


def test_the_inputs_that_code_the_group_become_constant(people):
    assert mapped(people)[:, -3:].abs().max() < 1e-12


def test_when_all_remains_the_rows_are_only_centred(people):
    torch.testing.assert_close(mapped(people, FLinear(remain=1.0)), people.inputs - people.inputs.mean(0))


def test_test_rows_are_mapped_by_what_training_found_and_unknown_groups_only_centred(people):
    train = people.rows(people.groups < 2)
    test = people.rows(torch.tensor([0, 30, 60]))
    assert test.groups.tolist() == [0, 1, 2] or len(test.groups.unique()) == 3
    shown = FLinear().test_inputs(test, train, {})
    for row, group, inputs in zip(shown, test.groups, test.inputs, strict=True):
        of_group = train.inputs[train.groups == group]
        torch.testing.assert_close(row, inputs - (of_group if len(of_group) else train.inputs).mean(0))


def test_where_the_group_would_tell_the_label_test_rows_can_be_left_alone(people):
    assert FLinear(map_test_rows=False).test_inputs(people, people, {}) is people.inputs


def test_a_client_with_one_group_keeps_its_rows(people):
    alone = people.rows(people.groups == 1)
    assert torch.equal(mapped(alone), alone.inputs)
    assert torch.equal(FLinear().test_inputs(people, alone, {}), people.inputs)


def test_with_global_scope_the_means_are_everybodys(people):
    method, halves = FLinear(scope="global"), (people.rows(slice(0, None, 2)), people.rows(slice(1, None, 2)))
    surveys = [method.survey(half) for half in halves]
    totals = {name: surveys[0][name] + surveys[1][name] for name in surveys[0]}
    assert totals["group_inputs"].shape == (3, 6)
    torch.testing.assert_close(mapped(halves[0], method, totals), mapped(people)[::2])
    torch.testing.assert_close(method.test_inputs(halves[1], halves[0], totals), mapped(people)[1::2])


def test_pixels_keep_their_shape(people):
    images = replace(people, inputs=people.inputs.view(-1, 1, 2, 3))
    torch.testing.assert_close(mapped(images), mapped(people).view(-1, 1, 2, 3))


def test_a_share_outside_its_range_is_refused():
    with pytest.raises(ConfigError, match=r"method\.remain"):
        FLinear(remain=1.5)

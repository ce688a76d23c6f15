"""The memory of the packed rung."""

import pytest
import torch

from equfl.core.random import Seed
from equfl.models.mlp import MLP
from equfl.simulation.engines._workspace import Sizes, Workspace


@pytest.fixture(autouse=True)
def in_place():
    """The mode in which the rung works, and alone may write into this memory."""
    with torch.inference_mode():
        yield


MARGIN, LOGITS = torch.tensor([[-1.0, 1.0]]), torch.eye(3)


def workspace(hidden, contrast, *, rows=5, clients=3, weighted=False):
    model = MLP(hidden)
    network = model.network((4,), contrast.shape[1])
    vector, _ = model.initial(network, Seed(0).generator("start"))
    sizes = Sizes.of(network.layout, rows=rows, weighted=weighted, scores=len(contrast))
    return Workspace(sizes, network.layout, contrast, clients=clients), network, vector


@pytest.mark.parametrize("contrast", [MARGIN, LOGITS], ids=["margin", "logits"])
@pytest.mark.parametrize("hidden", [(), (3,), (3, 2), (3, 2, 5)], ids=str)
def test_a_model_that_is_not_trained_is_read_as_it_was_given(hidden, contrast):
    space, network, vector = workspace(hidden, contrast)
    space.start(vector, 2)
    out = torch.empty(2, network.layout.size)
    space.read(out)
    torch.testing.assert_close(out, vector.expand(2, -1))


@pytest.mark.parametrize("hidden", [(), (3,), (3, 2)], ids=str)
def test_a_step_in_the_margin_moves_the_two_logits_by_half_of_it_each(hidden):
    space, network, vector = workspace(hidden, MARGIN)
    space.start(vector, 1)
    space.head[:1] += 1
    out = torch.empty(1, network.layout.size)
    space.read(out)
    before, after = network.layout.unflatten(vector), network.layout.unflatten(out[0])
    *_, weight, bias = network.layout.names
    torch.testing.assert_close(after[bias] - before[bias], torch.tensor([-0.5, 0.5]))
    torch.testing.assert_close(after[weight].sum(dim=0), before[weight].sum(dim=0))


def test_views_are_made_once_and_share_the_memory():
    space, _, _ = workspace((3,), MARGIN, clients=4)
    assert space.views(4, 5) is space.views(4, 5)
    few, all_ = space.views(2, 5), space.views(4, 5)
    few.packed.fill_(7)
    assert (all_.packed[:10] == 7).all()
    assert not (all_.packed[10:] == 7).any()


def test_the_views_of_a_row_are_its_inputs_with_a_one_its_label_and_its_importance():
    space, _, _ = workspace((3,), MARGIN, rows=2, clients=1, weighted=True)
    views = space.views(1, 2)
    views.packed[:] = torch.tensor([[1.0, 2, 3, 4, 1, 0, 0.5], [5, 6, 7, 8, 1, 1, 2]])
    assert views.hidden[0].below.tolist() == [[[1, 2, 3, 4, 1], [5, 6, 7, 8, 1]]]
    assert views.labels.tolist() == [[[0, 1]]]
    assert views.importance.tolist() == [[[0.5, 2]]]


def test_the_size_of_a_step_counts_all_that_it_touches():
    space, _, _ = workspace((3, 2), MARGIN, rows=5)
    rows, weights = 5 * (4 + 2 + 3 + 2 + 1), 5 * 3 + 3 * 2 + 2 * 1
    assert space.sizes.step == rows + weights

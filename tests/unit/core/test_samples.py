import torch

from equfl.core.samples import Samples, concatenate


def samples(rows: int, importance: bool = False) -> Samples:
    return Samples(
        inputs=torch.arange(rows * 2.0).reshape(rows, 2),
        labels=torch.arange(rows) % 2,
        groups=torch.zeros(rows, dtype=torch.int64),
        group_count=3,
        importance=torch.full((rows,), 2.0) if importance else None,
    )


def test_shards_give_back_each_clients_rows_without_copying():
    shards = concatenate([samples(3), samples(5)])
    assert [len(shard) for shard in shards] == [3, 5]
    assert torch.equal(shards[1].inputs, samples(5).inputs)
    assert shards[1].inputs.data_ptr() == shards.pooled.inputs[3:].data_ptr()


def test_clients_without_importance_weigh_one_beside_clients_that_have_it():
    shards = concatenate([samples(2), samples(2, importance=True)])
    assert shards.pooled.importance is not None
    assert shards.pooled.importance.tolist() == [1, 1, 2, 2]


def test_memberships_cover_declared_groups_that_no_row_belongs_to():
    assert samples(2).group_weights().tolist() == [[1, 0, 0], [1, 0, 0]]


def test_soft_labels_are_their_own_memberships():
    soft = torch.tensor([[0.3, 0.7]])
    assert torch.equal(Samples(torch.zeros(1, 2), soft, torch.zeros(1, dtype=torch.int64)).label_weights(), soft)


def test_chosen_rows_lose_their_neighbours_because_row_numbers_changed():
    whole = Samples(torch.zeros(2, 1), torch.tensor([0, 1]), torch.tensor([0, 1]), neighbours=torch.tensor([[0], [1]]))
    assert whole.rows(torch.tensor([1])).neighbours is None

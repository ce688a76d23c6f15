"""Which rows when: against what one client after another would train on."""

import pytest
import torch

from equfl.simulation.engines._schedule import busiest_first, shuffled
from equfl.training.sgd import SGD

TRAININGS = [SGD(batch_size=4), SGD(batch_size=4, epochs=3), SGD(batch_size=4, batches=2), SGD(batch_size=4, batches=7)]


def one_by_one(clients, client, round):
    """The batches of one client as ``SGD.train`` cuts them, as row numbers among all rows."""
    size = clients.shards.sizes[client]
    batches = [
        batch
        for order in clients.training.permutations(size, clients.draws(round, client))
        for batch in order.split(clients.training.batch_size)
    ]
    return [batch + clients.shards.starts[client] for batch in batches[: clients.training.steps(size)]]


@pytest.mark.parametrize("training", TRAININGS, ids=str)
@pytest.mark.parametrize("sizes", [(8, 8, 8), (9, 1, 4, 23, 6), (5,)], ids=str)
def test_every_client_gets_the_batches_that_it_would_cut_for_itself(clients, training, sizes):
    made = clients(sizes, training=training)
    ids = busiest_first(made, training, range(len(sizes)))
    found = {client: [] for client in ids}
    steps, lines = shuffled(made, training, ids, round=5)
    for step, rows in zip(steps, lines, strict=True):
        for place, batch in enumerate(rows.view(step.count, step.width)):
            size = step.width if step.sizes is None else int(step.sizes[place])
            found[ids[place]].append(batch[:size])
            assert (batch[size:] == batch.new_tensor(made.shards.starts[ids[place]])).all()
    for client, batches in found.items():
        expected = one_by_one(made, client, 5)
        assert len(batches) == len(expected)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(batches, expected, strict=True))


def test_the_filling_of_a_short_batch_is_a_row_of_the_clients_own(clients):
    made = clients((6, 5), training=SGD(batch_size=4))
    steps, lines = shuffled(made, made.training, [0, 1], round=1)
    last = lines[-1].view(2, -1)
    assert steps[-1].sizes.tolist() == [2, 1]
    assert last[1, 1] == made.shards.starts[1]


def test_the_busiest_come_first_and_ties_go_by_client(clients):
    made = clients((3, 9, 3, 12, 10), training=SGD(batch_size=4))
    # Steps: 1, 3, 1, 3, 3.
    assert busiest_first(made, made.training, [0, 1, 2, 3, 4]) == [3, 4, 1, 0, 2]
    assert busiest_first(made, made.training, [2, 0]) == [1, 0]


def test_neighbours_with_batches_of_one_size_are_put_together(clients):
    made = clients((8, 7, 7, 6), training=SGD(batch_size=4))
    steps, _ = shuffled(made, made.training, [0, 1, 2, 3], round=1)
    assert [list(step.alike()) for step in steps] == [
        [(slice(0, 4), 4)],
        [(slice(0, 1), 4), (slice(1, 3), 3), (slice(3, 4), 2)],
    ]

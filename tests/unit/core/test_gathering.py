"""What is sent back and cannot be used is sorted out before any rule or method sees it."""

import pytest
import torch

from equfl.core.errors import CohortError
from equfl.core.gathering import gather, stacked
from equfl.core.protocol import ServerState

STATE = ServerState(0, torch.tensor([1.0, 2.0]))
SENT = torch.tensor([[0.0, 2.0], [1.0, 1.0], [3.0, 2.0]])


def gathered(vectors=SENT, sizes=(1, 1, 2), ids=(4, 7, 9), **more):
    return gather(STATE, ids, vectors, sizes, **({"learning_rate": 0.5, "buffers": {}, "reports": {}} | more))


def test_an_update_is_the_way_back_to_the_model_that_was_sent_out_in_learning_rates():
    cohort = gathered()
    assert cohort.updates.tolist() == [[2.0, 0.0], [0.0, 2.0], [-4.0, 0.0]]
    assert cohort.shares.tolist() == [0.25, 0.25, 0.5]
    assert cohort.ids == (4, 7, 9)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_client_whose_update_is_not_finite_is_left_out_and_the_others_share_among_themselves(bad):
    vectors = SENT.clone()
    vectors[1, 0] = bad
    cohort = gathered(vectors, reports={"count": torch.tensor([1.0, 2.0, 3.0])})
    assert cohort.ids == (4, 9)
    assert cohort.updates.tolist() == [[2.0, 0.0], [-4.0, 0.0]]
    torch.testing.assert_close(cohort.shares, torch.tensor([1 / 3, 2 / 3]))
    assert cohort.reports["count"].tolist() == [1.0, 3.0]


def test_a_finite_model_so_far_off_that_its_update_is_not_is_left_out():
    vectors = SENT.clone()
    vectors[0, 0] = 3e38
    assert gathered(vectors).ids == (7, 9)


def test_a_client_whose_buffers_are_not_finite_is_left_out():
    buffers = {"mean": torch.tensor([[1.0], [2.0], [float("nan")]]), "batches": torch.tensor([5, 8, 7])}
    cohort = gathered(buffers=buffers)
    assert cohort.ids == (4, 7)
    assert cohort.buffers["mean"].tolist() == [1.5]
    assert cohort.buffers["batches"].item() == 8


def test_nan_in_a_report_is_an_answer_and_no_reason_to_be_left_out():
    cohort = gathered(reports={"gap": torch.tensor([0.1, float("nan"), 0.2])})
    assert cohort.ids == (4, 7, 9)
    assert cohort.reports["gap"][1].isnan()


def test_a_cohort_of_nobody_is_empty():
    cohort = gathered(torch.full_like(SENT, float("nan")), buffers={"mean": torch.ones(3, 1)})
    assert (cohort.ids, tuple(cohort.updates.shape), tuple(cohort.shares.shape)) == ((), (0, 2), (0,))


def test_updates_of_a_wrong_length_are_refused():
    with pytest.raises(CohortError, match="updates of 3 parameters; wanted the 2 parameters"):
        gathered(torch.zeros(3, 3))


def test_of_updates_that_come_one_by_one_the_client_with_a_wrong_length_is_named():
    assert stacked((4, 7), [SENT[0], SENT[1]], 2).tolist() == SENT[:2].tolist()
    with pytest.raises(CohortError, match=r"shape \(3,\) from client 7; wanted the 2 parameters"):
        stacked((4, 7), [SENT[0], torch.zeros(3)], 2)


def test_a_client_that_says_it_trained_on_nothing_is_refused():
    with pytest.raises(CohortError, match="client 7 says that it trained on 0 rows"):
        gathered(sizes=(1, 0, 2))

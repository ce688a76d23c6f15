from dataclasses import replace

import pytest
import torch

from equfl.core.errors import CohortError
from equfl.core.protocol import Cohort
from equfl.core.random import Seed
from equfl.core.secure_sum import STEP, fixed, masked, opened, secure_total, summed

IDS = (0, 3, 4, 9)


def rows(clients: int = 4) -> torch.Tensor:
    return 100 * torch.randn(clients, 500, generator=Seed(0).generator("rows"), dtype=torch.float64)


def shared(first: int, second: int) -> torch.Generator:
    return Seed(first).generator("mask", client=second)


def sent(values: torch.Tensor) -> torch.Tensor:
    """What each client sends."""
    return torch.stack(
        [masked(fixed(row, clients=len(IDS)), client, IDS, shared) for client, row in zip(IDS, values, strict=True)]
    )


def test_the_masks_cancel_to_the_bit():
    assert torch.equal(opened(sent(rows()).sum(dim=0)), secure_total(rows()))


def test_what_a_client_sends_looks_like_noise_whatever_its_numbers_are():
    for values in (rows(), torch.zeros(4, 500)):
        bits = (sent(values).unsqueeze(-1) >> torch.arange(64)) & 1
        assert (bits.double().mean(dim=1) - 0.5).abs().max() < 0.15
        assert len(sent(values).unique()) == 4 * 500


def test_no_sum_over_some_of_the_clients_can_be_read():
    partial = opened(sent(rows())[:3].sum(dim=0))
    assert (partial - rows()[:3].sum(dim=0)).abs().median() > 1e6


def test_the_sum_is_right_to_half_a_step_per_client():
    assert (secure_total(rows()) - rows().sum(dim=0)).abs().max() <= 4 * STEP / 2


def test_counts_are_summed_exactly():
    counts = torch.tensor([[3.0, 1e6], [4.0, 12.0]])
    assert secure_total(counts).tolist() == [7, 1_000_012]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e15])
def test_numbers_that_fixed_point_cannot_hold_are_refused(bad):
    with pytest.raises(CohortError, match="to be summed in secret; wanted finite numbers of at most"):
        secure_total(torch.tensor([[1.0], [bad]]))


def cohort() -> Cohort:
    return Cohort(
        ids=IDS,
        updates=rows().float(),
        shares=torch.tensor([0.1, 0.2, 0.3, 0.4]),
        rows=(10.0, 20.0, 30.0, 40.0),
        buffers={"mean": torch.tensor([0.5]), "steps": torch.tensor(70)},
        reports={"counts": torch.arange(8.0).view(4, 2)},
    )


def test_the_server_gets_one_row_from_which_nobodys_can_be_told():
    seen = summed(cohort(), sent={"mean": torch.tensor([0.0]), "steps": torch.tensor(20)})
    assert (seen.ids, seen.rows) == (IDS, (100.0,))
    assert seen.updates.shape == (1, 500)
    assert seen.reports["counts"].tolist() == [[12, 16]]
    torch.testing.assert_close(seen.shares @ seen.updates, cohort().shares @ cohort().updates)
    # Two clients swap what they gained and lost: the server sees no difference.
    moved = cohort().updates.double()
    moved[0] += 4.0
    moved[3] -= 1.0
    other = summed(replace(cohort(), updates=moved.float()), sent={"steps": torch.tensor(20)})
    torch.testing.assert_close(other.updates, seen.updates)


def test_counters_which_are_no_sums_stay_as_they_were_sent_out():
    seen = summed(cohort(), sent={"mean": torch.tensor([0.0]), "steps": torch.tensor(20)})
    assert seen.buffers == {"mean": torch.tensor([0.5]), "steps": torch.tensor(20)}

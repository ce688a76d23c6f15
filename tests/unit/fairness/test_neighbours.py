"""The nearest rows: every shortcut gives what comparing all pairs gives."""

import pytest
import torch
from torch.nn.functional import one_hot

from equfl.core.random import Seed
from equfl.fairness import neighbours
from equfl.fairness.neighbours import Buckets, nearest


def by_definition(inputs: torch.Tensor, k: int, include_self: bool = True) -> torch.Tensor:
    differences = inputs.double().unsqueeze(1) - inputs.double()
    distances = differences.square().sum(dim=2)
    if not include_self:
        distances.fill_diagonal_(torch.inf)
    return distances.sort(dim=1, stable=True).indices[:, :k]


def census(rows: int, columns: int = 2, decimals: int = 1) -> torch.Tensor:
    draws = Seed(0).generator("rows")
    numbers = torch.randn(rows, columns, generator=draws).mul(10**decimals).round() / 10**decimals
    codes = [one_hot((torch.rand(rows, generator=draws) ** 2 * size).long(), size) for size in (3, 4, 2)]
    return torch.cat([numbers, *codes], dim=1)


def test_by_hand() -> None:
    inputs = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    assert nearest(inputs, k=2).tolist() == [[0, 1], [1, 0], [2, 1], [3, 2]]
    assert nearest(inputs, k=2, include_self=False).tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    "inputs",
    [
        census(400),
        census(400, decimals=0),
        census(60),
        census(300, columns=20),
        torch.zeros(50, 3),
        torch.randn(200, 30, generator=Seed(1).generator("rows")),
        one_hot(torch.arange(90) % 7, 7).float(),
        torch.randn(40, 1, 5, 5, generator=Seed(2).generator("rows")),
    ],
    ids=["codes and numbers", "ties", "few rows", "many numbers", "all the same", "no codes", "only codes", "pictures"],
)
def test_every_kind_of_rows_agrees_with_the_definition(inputs: torch.Tensor, include_self: bool) -> None:
    expected = by_definition(inputs.flatten(1), 5, include_self)
    found = nearest(inputs, k=5, include_self=include_self)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("decimals", [0, 2])
def test_a_large_bucket_searched_by_a_tree_agrees_with_the_definition(
    decimals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "LARGE", 64)
    inputs = census(500, decimals=decimals)
    assert torch.equal(nearest(inputs), by_definition(inputs, 5))


def test_rows_that_codes_tell_apart_are_not_put_into_buckets() -> None:
    inputs = (torch.rand(100, 30, generator=Seed(0).generator("codes")) < 0.5).double()
    assert len(Buckets.of(inputs.numpy())) == 1
    assert torch.equal(nearest(inputs), by_definition(inputs, 5))


@pytest.mark.parametrize(("rows", "include_self", "found"), [(3, True, 3), (3, False, 2), (1, True, 1), (1, False, 0)])
def test_there_are_never_more_neighbours_than_rows(rows: int, include_self: bool, found: int) -> None:
    result = nearest(torch.arange(float(rows)).unsqueeze(1), k=5, include_self=include_self)
    assert result.shape == (rows, found)


def test_progress_ends_at_the_number_of_rows() -> None:
    told = []
    nearest(census(50), progress=lambda task, done, total: told.append((done, total)))
    assert told[-1] == (50, 50)

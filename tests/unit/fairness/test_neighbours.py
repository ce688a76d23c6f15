"""The nearest rows: every shortcut gives what comparing all pairs gives."""

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from equfl.core.random import Seed
from equfl.fairness import _buckets, _products, neighbours
from equfl.fairness._buckets import Buckets
from equfl.fairness.neighbours import nearest


def by_definition(inputs: torch.Tensor, k: int = 5, include_self: bool = True) -> torch.Tensor:
    differences = inputs.flatten(1).double().unsqueeze(1) - inputs.flatten(1).double()
    distances = differences.square().sum(dim=2)
    if not include_self:
        distances.fill_diagonal_(torch.inf)
    return distances.sort(dim=1, stable=True).indices[:, :k]


def census(rows: int, columns: int = 2, steps: int = 8) -> torch.Tensor:
    """Numbers on a grid whose distances no arithmetic rounds, so that all ties are true ones."""
    draws = Seed(0).generator("rows")
    numbers = torch.randn(rows, columns, generator=draws).mul(steps).round() / steps
    codes = [one_hot((torch.rand(rows, generator=draws) ** 2 * size).long(), size) for size in (3, 4, 2)]
    return torch.cat([numbers, *codes], dim=1)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=Seed(1).generator("rows"))


ROWS = {
    "codes and numbers": census(400),
    "ties": census(400, steps=1),
    "few rows": census(60),
    "many numbers": census(300, columns=20),
    "all the same": torch.zeros(50, 3),
    "numbers only": normal(300, 3),
    "many numbers only": normal(200, 30),
    "codes only": one_hot(torch.arange(90) % 7, 7).float(),
    "codes that tell rows apart": (normal(150, 30) < 0).double(),
    "every row twice": normal(100, 4).repeat(2, 1),
    "pictures": normal(40, 1, 5, 5),
    "no columns": torch.zeros(6, 0),
    "zeros of both signs": torch.tensor([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0], [-0.0, -1.0]]).repeat(3, 1),
}


@pytest.fixture(params=[neighbours.FEW_ROWS, 0], ids=["matrix products", "buckets if possible"])
def _either_search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "FEW_ROWS", request.param)


def test_by_hand() -> None:
    inputs = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    assert nearest(inputs, k=2).tolist() == [[0, 1], [1, 0], [2, 1], [3, 2]]
    assert nearest(inputs, k=2, include_self=False).tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]


def test_rows_that_are_the_same_have_the_first_of_them_as_neighbours() -> None:
    inputs = torch.tensor([[5.0], [1.0], [5.0], [5.0], [2.0], [5.0]])
    assert nearest(inputs, k=3).tolist() == [[0, 2, 3], [1, 4, 0], [0, 2, 3], [0, 2, 3], [4, 1, 0], [0, 2, 3]]
    assert nearest(inputs, k=2, include_self=False)[5].tolist() == [0, 2]


@pytest.mark.usefixtures("_either_search")
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("kind", ROWS)
def test_every_kind_of_rows_agrees_with_the_definition(kind: str, include_self: bool) -> None:
    expected = by_definition(ROWS[kind], 5, include_self)
    assert torch.equal(nearest(ROWS[kind], k=5, include_self=include_self), expected)


@pytest.mark.usefixtures("_either_search")
@pytest.mark.parametrize("k", [1, 12, 60])
def test_any_number_of_neighbours_agrees_with_the_definition(k: int) -> None:
    assert torch.equal(nearest(census(300), k=k), by_definition(census(300), k))


@pytest.mark.usefixtures("_either_search")
@pytest.mark.parametrize("kind", ["codes and numbers", "ties", "many numbers", "every row twice"])
def test_working_on_a_few_rows_at_a_time_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_products, "QUERIES", 7)
    monkeypatch.setattr(_products, "CANDIDATES", 11)
    monkeypatch.setattr(_buckets, "QUERIES", 7)
    monkeypatch.setattr(_buckets, "PAIRS", 77)
    monkeypatch.setattr(_buckets, "ENOUGH", 20)
    monkeypatch.setattr(neighbours, "AT_A_TIME", 50)
    assert torch.equal(nearest(ROWS[kind]), by_definition(ROWS[kind]))


@pytest.mark.parametrize("steps", [1, 64])
def test_a_large_bucket_searched_by_a_tree_agrees_with_the_definition(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "FEW_ROWS", 0)
    monkeypatch.setattr(_buckets, "LARGE", 32)
    inputs = census(1000, steps=steps)
    assert torch.equal(nearest(inputs), by_definition(inputs))


def test_more_ties_than_a_tree_was_asked_for_are_settled_by_row_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "FEW_ROWS", 0)
    monkeypatch.setattr(_buckets, "LARGE", 32)
    monkeypatch.setattr(_buckets, "SPARE", 1)
    grid = torch.cartesian_prod(torch.arange(9.0), torch.arange(9.0), torch.arange(3.0))
    inputs = grid[torch.randperm(len(grid), generator=Seed(0).generator("order"))]
    assert torch.equal(nearest(inputs, k=4), by_definition(inputs, 4))


@pytest.mark.parametrize(
    "inputs",
    [
        normal(300, 30) + 1000,
        normal(300, 30).double() * 1e-3 + 1,
        torch.cat([normal(300, 30), torch.full((2, 30), 1e6)]),
        normal(300, 30) * 1e16,
    ],
    ids=["far from the origin", "close together", "two rows far away", "large numbers"],
)
def test_matrix_products_lose_no_neighbour_to_rounding(inputs: torch.Tensor) -> None:
    assert torch.equal(nearest(inputs), by_definition(inputs))


def test_rows_that_codes_tell_apart_are_not_put_into_buckets() -> None:
    assert Buckets.of(ROWS["codes that tell rows apart"].numpy()) is None
    assert Buckets.of(ROWS["many numbers"].numpy()) is None
    assert len(Buckets.of(ROWS["codes and numbers"].numpy()).sizes) == 24


@pytest.mark.parametrize(("rows", "include_self", "found"), [(3, True, 3), (3, False, 2), (1, True, 1), (1, False, 0)])
def test_there_are_never_more_neighbours_than_rows(rows: int, include_self: bool, found: int) -> None:
    result = nearest(torch.arange(float(rows)).unsqueeze(1), k=5, include_self=include_self)
    assert result.shape == (rows, found)


@pytest.mark.usefixtures("_either_search")
def test_progress_ends_when_all_different_rows_are_done() -> None:
    told = []
    nearest(census(200), progress=lambda task, done, total: told.append((done, total)))
    different = len(np.unique(census(200).numpy(), axis=0))
    assert told[-1] == (different, different)
    assert [done for done, _ in told] == sorted(done for done, _ in told)

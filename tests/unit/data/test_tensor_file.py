"""Named tensors in one file: read as they were written, or not at all."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equfl.data import tensor_file

TENSORS = {"matrix": torch.arange(6.0).reshape(2, 3), "numbers": torch.tensor([1, -2]), "empty": torch.empty(0, 4)}
ABOUT = {"name": "two", "sizes": [1, 2], "deep": {"text": "ä\n"}}


@pytest.fixture
def path(tmp_path):
    tensor_file.write(tmp_path / "file", TENSORS, ABOUT)
    return tmp_path / "file"


def test_what_was_written_is_read(path):
    tensors, about = tensor_file.read(path)
    assert about == ABOUT
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_view_is_written_as_its_own_values(tmp_path):
    rows = torch.arange(12.0).reshape(3, 4)
    tensor_file.write(tmp_path / "file", {"part": rows[1:, ::2], "turned": rows.T}, {})
    tensors, _ = tensor_file.read(tmp_path / "file")
    assert torch.equal(tensors["part"], rows[1:, ::2])
    assert torch.equal(tensors["turned"], rows.T)


def test_a_file_that_is_not_there_is_nothing(tmp_path):
    assert tensor_file.read(tmp_path / "file") is None


@given(data=st.data())
def test_no_truncated_file_is_read(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("truncated") / "file"
    tensor_file.write(path, TENSORS, ABOUT, sync=False)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert tensor_file.read(path) is None


@given(data=st.data())
def test_a_file_with_a_changed_byte_is_not_read_as_something_else(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("changed") / "file"
    tensor_file.write(path, TENSORS, ABOUT, sync=False)
    whole = bytearray(path.read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    found = tensor_file.read(path)
    assert found is None or (found[1] == ABOUT and all(torch.equal(found[0][name], TENSORS[name]) for name in TENSORS))


def test_the_same_bytes_as_another_type_are_not_read(path):
    whole = path.read_bytes()
    assert whole.count(b'"F32"') == 2
    path.write_bytes(whole.replace(b'"F32"', b'"I32"'))
    assert tensor_file.read(path) is None


def test_a_foreign_safetensors_file_is_nothing(tmp_path):
    from safetensors.torch import save_file

    save_file({"matrix": torch.ones(2)}, tmp_path / "file")
    assert tensor_file.read(tmp_path / "file") is None


def test_two_names_for_the_same_tensor_and_a_part_of_it_are_all_written(tmp_path):
    rows = torch.arange(12.0).reshape(4, 3)
    tensor_file.write(tmp_path / "file", {"one": rows, "again": rows, "part": rows[:2], "none": rows[:0]}, {})
    tensors, _ = tensor_file.read(tmp_path / "file")
    assert torch.equal(tensors["one"], rows)
    assert torch.equal(tensors["again"], rows)
    assert torch.equal(tensors["part"], rows[:2])
    assert tensors["none"].shape == (0, 3)

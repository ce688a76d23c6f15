"""A federation as one file."""

from dataclasses import replace

import pytest
import torch

from equfl.data import federation_file, tensor_file
from equfl.data.base import Federation, Grouping
from equfl.data.neighbourhood import with_neighbours
from equfl.data.toy import Toy


@pytest.fixture
def federation() -> Federation:
    toy = Toy(clients=3, rows=20, spread=1.0).load()
    halves = torch.arange(len(toy.test.pooled)) % 2
    return with_neighbours(replace(toy, groupings={"half": Grouping(("even", "odd"), halves)}))


def test_what_was_written_is_read(federation, tmp_path):
    federation_file.write(federation, tmp_path / "file")
    found = federation_file.read(tmp_path / "file")
    for name in ("name", "clients", "schema", "facts"):
        assert getattr(found, name) == getattr(federation, name)
    for part in ("train", "test"):
        ours, theirs = getattr(federation, part), getattr(found, part)
        assert ours.sizes == theirs.sizes
        for name in ("inputs", "labels", "groups"):
            assert torch.equal(getattr(ours.pooled, name), getattr(theirs.pooled, name))
        assert (ours.pooled.classes, ours.pooled.group_count) == (theirs.pooled.classes, theirs.pooled.group_count)
    assert torch.equal(found.test.pooled.neighbours, federation.test.pooled.neighbours)
    assert torch.equal(found.test.own_neighbours, federation.test.own_neighbours)
    assert found.train.pooled.neighbours is None
    assert found.groupings["half"].names == ("even", "odd")
    assert torch.equal(found.groupings["half"].groups, federation.groupings["half"].groups)


def test_groups_may_sit_in_no_input_and_rows_have_no_columns(federation, tmp_path):
    bare = replace(federation, schema=replace(federation.schema, columns=(), group_codes=()), groupings={})
    federation_file.write(bare, tmp_path / "file")
    assert federation_file.read(tmp_path / "file").schema == bare.schema


def test_a_file_of_an_older_format_is_not_read(federation, tmp_path, monkeypatch):
    federation_file.write(federation, tmp_path / "file")
    monkeypatch.setattr(federation_file, "FORMAT", federation_file.FORMAT + 1)
    assert federation_file.read(tmp_path / "file") is None


def test_a_file_of_something_else_is_not_read(tmp_path):
    tensor_file.write(tmp_path / "file", {"vector": torch.ones(3)}, {"round": 3})
    assert federation_file.read(tmp_path / "file") is None

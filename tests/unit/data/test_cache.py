"""What is prepared once is read many times, and never read when it is something else."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from equfl.core.errors import DataMissing
from equfl.data import cache
from equfl.data.base import Dataset
from equfl.data.toy import Toy


@dataclass(frozen=True)
class Counted(Toy):
    """The toy federation, made from a file; it counts how often it is made."""

    path: str = ""

    def load(self, *, progress=lambda task, done, total: None):
        return cache.prepared(self, [Path(self.path)], self._build)

    def _build(self):
        BUILT.append(self)
        return super().load()


BUILT: list[Dataset] = []


@pytest.fixture
def dataset(tmp_path) -> Counted:
    BUILT.clear()
    (tmp_path / "rows").write_text("the rows")
    return Counted(clients=2, rows=5, path=str(tmp_path / "rows"))


def prepared_files() -> list[Path]:
    return list((cache.folder() / "prepared").iterdir())


def test_what_was_prepared_is_read_and_the_same(dataset):
    first, second = dataset.load(), dataset.load()
    assert len(BUILT) == 1
    assert len(prepared_files()) == 1
    assert torch.equal(first.train.pooled.inputs, second.train.pooled.inputs)
    assert first.schema == second.schema


def test_other_settings_are_prepared_apart(dataset):
    dataset.load()
    replace(dataset, seed=1).load()
    dataset.load()
    assert len(BUILT) == len(prepared_files()) == 2


@pytest.mark.parametrize("change", ["content", "time"])
def test_a_changed_source_is_prepared_again(dataset, change):
    dataset.load()
    if change == "content":
        Path(dataset.path).write_text("other rows")
    else:
        os.utime(dataset.path, (1, 1))
    dataset.load()
    assert len(BUILT) == 2


def test_another_version_prepares_again(dataset, monkeypatch):
    dataset.load()
    monkeypatch.setattr(cache, "version", lambda package: "99.0")
    dataset.load()
    assert len(BUILT) == 2


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_prepared_again_and_replaced(dataset, damage):
    whole = dataset.load()
    (path,) = prepared_files()
    path.write_bytes(path.read_bytes()[:-3] if damage is None else damage)
    assert torch.equal(dataset.load().train.pooled.inputs, whole.train.pooled.inputs)
    dataset.load()
    assert len(BUILT) == 2


def test_where_nothing_can_be_kept_it_is_said_and_made_anew(dataset, monkeypatch, tmp_path):
    (tmp_path / "blocked").write_text("a file, and no folder")
    monkeypatch.setenv("EQUFL_CACHE", str(tmp_path / "blocked"))
    with pytest.warns(UserWarning, match=r"prepared rows are not kept.*EQUFL_CACHE names another folder"):
        assert len(dataset.load().clients) == 2


def test_the_cache_is_the_users_unless_a_folder_is_named(monkeypatch, tmp_path):
    assert cache.folder() == tmp_path / "cache"
    monkeypatch.setenv("EQUFL_CACHE", "")
    assert cache.folder().name == "equfl"


def test_the_folder_with_data_must_be_there_if_it_is_named(monkeypatch, tmp_path):
    assert cache.data_folder() is None
    monkeypatch.setenv("EQUFL_DATA", str(tmp_path))
    assert cache.data_folder() == tmp_path
    monkeypatch.setenv("EQUFL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataMissing, match=r"EQUFL_DATA names .*nowhere, where no folder is"):
        cache.data_folder()


@pytest.mark.parametrize(("value", "forbidden"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_offline_is_forbidden_by_anything_but_nothing_and_0(monkeypatch, value, forbidden):
    monkeypatch.setenv("EQUFL_OFFLINE", value)
    assert cache.offline() is forbidden

"""Files that are whole or not there at all."""

import stat

import pytest

from equfl.data.replacing import replacing


def test_the_new_file_takes_the_place_of_the_old_one_when_the_block_ends(tmp_path):
    path = tmp_path / "folder" / "file"
    with replacing(path) as fresh:
        fresh.write_text("first")
        assert not path.exists()
    with replacing(path) as fresh:
        fresh.write_text("second")
        assert path.read_text() == "first"
    assert path.read_text() == "second"
    assert list(path.parent.iterdir()) == [path]


def leave(path, reason: type[BaseException]) -> None:
    with replacing(path) as fresh:
        fresh.write_text("half")
        raise reason


@pytest.mark.parametrize("reason", [RuntimeError, KeyboardInterrupt])
def test_a_block_that_ends_early_leaves_the_old_file_and_nothing_else(tmp_path, reason):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(reason):
        leave(path, reason)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_ends_early_makes_no_file(tmp_path):
    with pytest.raises(RuntimeError):
        leave(tmp_path / "file", RuntimeError)
    assert list(tmp_path.iterdir()) == []


def test_only_the_user_may_read_the_file(tmp_path):
    with replacing(tmp_path / "file") as fresh:
        fresh.write_text("a user's own table")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600

import pytest
import torch

from equfl.core.protocol import ServerState
from equfl.core.random import Seed
from equfl.runs.checkpoint import Checkpoints


def tensor(number: int, size: int = 4) -> torch.Tensor:
    return torch.randn(size, generator=Seed(number).generator("tensor"))


def state(round: int, **memory: torch.Tensor) -> ServerState:
    return ServerState(round, tensor(round), {"bn.running_mean": tensor(100 + round)}, memory)


def saved(folder, states):
    checkpoints = Checkpoints(folder)
    for one in states:
        checkpoints.save(one, {"note": one.round}, safe=False)
    return checkpoints


def names(folder, pattern):
    return sorted(path.name for path in folder.glob(pattern))


def same(a: ServerState, b: ServerState) -> bool:
    return (
        a.round == b.round
        and torch.equal(a.vector, b.vector)
        and a.buffers.keys() == b.buffers.keys()
        and all(torch.equal(a.buffers[name], b.buffers[name]) for name in a.buffers)
        and a.memory.keys() == b.memory.keys()
        and all(torch.equal(a.memory[name], b.memory[name]) for name in a.memory)
        and all(a.memory[name].dtype == b.memory[name].dtype for name in a.memory)
    )


def test_a_state_comes_back_as_it_was_whatever_is_in_its_memory(tmp_path):
    memory = {
        "collected/00001": tensor(7),
        "synthetic/labels": torch.tensor([1, 0]),
        "scalar": torch.tensor(0.5, dtype=torch.float64),
        "none": torch.empty(0, 3),
        "flags": torch.tensor([True, False]),
    }
    written = state(3, **memory)
    saved(tmp_path, [written])
    found = Checkpoints(tmp_path).read(next(Checkpoints(tmp_path).newest_first()))
    assert same(found.state, written)
    assert found.about["note"] == 3


def test_the_newest_two_stay(tmp_path):
    saved(tmp_path, [state(number) for number in range(1, 6)])
    assert names(tmp_path, "*") == ["round-00004.safetensors", "round-00005.safetensors"]


def test_the_newest_that_a_power_cut_would_leave_stays_too(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for number in range(1, 6):
        checkpoints.save(state(number), {}, safe=number == 2)
    assert names(tmp_path, "*") == [f"round-0000{number}.safetensors" for number in (2, 4, 5)]
    checkpoints.save(state(6), {}, safe=True)
    assert names(tmp_path, "*") == [f"round-0000{number}.safetensors" for number in (5, 6)]


def test_what_lasts_is_written_once_and_what_changes_every_round_is_not_kept_apart(tmp_path):
    large = tensor(1, size=10_000)
    saved(tmp_path, [state(number, large=large, count=tensor(number)) for number in range(1, 6)])
    (kept,) = tmp_path.glob("memory-*.safetensors")
    assert kept.stat().st_size > large.nbytes
    assert all(path.stat().st_size < 2_000 for path in tmp_path.glob("round-*.safetensors"))


def test_an_equal_entry_that_is_another_tensor_is_not_taken_for_unchanged(tmp_path):
    saved(tmp_path, [state(number, count=torch.ones(3)) for number in range(1, 4)])
    assert names(tmp_path, "memory-*") == []


def test_what_no_checkpoint_refers_to_any_more_is_removed(tmp_path):
    old, new = tensor(1), tensor(2)
    saved(tmp_path, [state(1, a=old), state(2, a=old), state(3, a=new), state(4, a=new), state(5, a=new)])
    (kept,) = tmp_path.glob("memory-*")
    assert torch.equal(Checkpoints(tmp_path)._read_once(kept.name), new)


def test_going_on_from_a_checkpoint_writes_what_lasts_no_second_time(tmp_path):
    large = tensor(1, size=1_000)
    saved(tmp_path, [state(number, large=large) for number in (1, 2)])
    (kept,) = tmp_path.glob("memory-*")
    written = kept.stat().st_mtime_ns
    again = Checkpoints(tmp_path)
    loaded = again.read(next(again.newest_first())).state
    again.save(state(3, large=loaded.memory["large"]), {}, safe=False)
    assert kept.stat().st_mtime_ns == written
    assert (tmp_path / "round-00003.safetensors").stat().st_size < 2_000


DAMAGES = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "one bit": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "something else": lambda data: b"not a checkpoint",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("file", ["round-00002.safetensors", "memory-*.safetensors"])
def test_damage_is_found_wherever_it_is(tmp_path, damage, file):
    large = tensor(1)
    checkpoints = saved(tmp_path, [state(number, large=large) for number in (1, 2)])
    newest = next(checkpoints.newest_first())
    assert checkpoints.read(newest) is not None
    (path,) = tmp_path.glob(file)
    path.write_bytes(damage(path.read_bytes()))
    assert Checkpoints(tmp_path).read(newest) is None


def test_a_whole_file_with_another_content_is_found_out(tmp_path):
    large, other = tensor(1), tensor(2)
    saved(tmp_path / "a", [state(number, large=large) for number in (1, 2)])
    saved(tmp_path / "b", [state(number, large=other) for number in (1, 2)])
    (mine,), (foreign,) = (tmp_path / "a").glob("memory-*"), (tmp_path / "b").glob("memory-*")
    mine.write_bytes(foreign.read_bytes())
    assert Checkpoints(tmp_path / "a").read(tmp_path / "a" / "round-00002.safetensors") is None


def test_a_damaged_file_of_its_own_is_written_again(tmp_path):
    large = tensor(1)
    saved(tmp_path, [state(number, large=large) for number in (1, 2)])
    (kept,) = tmp_path.glob("memory-*")
    kept.write_bytes(b"")
    saved(tmp_path, [state(number, large=large) for number in (1, 2)])
    assert Checkpoints(tmp_path).read(tmp_path / "round-00002.safetensors") is not None

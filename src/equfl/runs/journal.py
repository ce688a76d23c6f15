"""``rounds.jsonl``: one line of JSON per round, appended as the rounds come."""

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from equfl.core.protocol import RoundRecord
from equfl.data.replacing import replacing


@dataclass(frozen=True)
class Mark:
    """How long a journal was, and what it read like up to there: what a checkpoint knows of the rounds before it."""

    size: int = 0
    checksum: int = 0


class Journal:
    """Lines are only ever added at the end; a mark says up to where they belong to a checkpoint."""

    def __init__(self, path: Path, mark: Mark | None = None) -> None:
        self.path = path
        self.mark = mark or Mark()
        self._file = path.open("ab", buffering=0)
        if self._file.tell() != self.mark.size:
            # What lies behind the mark was written by somebody who came no further.
            self._file.truncate(self.mark.size)

    @classmethod
    def at(cls, path: Path, mark: Mark) -> "Journal | None":
        """The journal, cut back to the mark; ``None`` if it does not read as it did then."""
        try:
            with path.open("rb") as file:
                start = file.read(mark.size)
        except FileNotFoundError:
            start = b""
        return cls(path, mark) if _marked(start) == mark else None

    def append(self, record: RoundRecord) -> None:
        """Write one more round."""
        line = _line(record)
        rest = memoryview(line)
        while rest:  # a disk that fills up takes a part first, and only then complains
            rest = rest[self._file.write(rest) :]
        self.mark = Mark(self.mark.size + len(line), zlib.crc32(line, self.mark.checksum))

    def sync(self) -> None:
        """Make sure that a power cut does not take the lines."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def write_records(path: Path, records: Iterable[RoundRecord]) -> Mark:
    """A journal of these rounds, whole or not at all."""
    text = b"".join(map(_line, records))
    with replacing(path) as fresh:
        fresh.write_bytes(text)
    return _marked(text)


def read_records(path: Path) -> tuple[RoundRecord, ...]:
    """The rounds in a journal."""
    return tuple(_record(json.loads(line)) for line in path.read_bytes().splitlines())


def _marked(text: bytes) -> Mark:
    return Mark(len(text), zlib.crc32(text))


def _line(record: RoundRecord) -> bytes:
    return (
        json.dumps({name: _spelled(value) for name, value in asdict(record).items()}, allow_nan=False).encode() + b"\n"
    )


def _spelled(value: Any) -> Any:
    # JSON has no word for NaN, which stands for 'cannot be said', nor for infinity.
    if isinstance(value, Mapping):
        return {name: _spelled(one) for name, one in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value


def _record(plain: dict[str, Any]) -> RoundRecord:
    numbers = {
        name: {key: _number(one) for key, one in value.items()}
        for name, value in plain.items()
        if isinstance(value, dict)
    }
    return RoundRecord(**{**plain, **numbers, "rejected": tuple(plain["rejected"])})


def _number(spelled: float | str | None) -> float:
    return float("nan") if spelled is None else float(spelled)

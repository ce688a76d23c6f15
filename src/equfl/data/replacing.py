"""Files that are whole or not there at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """A new file beside ``path`` that takes its place when the block ends, and vanishes when the block fails.

    Without ``sync`` a power cut (not the end of the process) may leave less than was written: enough for a file with a
    checksum that can be made again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    fresh = Path(name)
    try:
        yield fresh
        if sync:
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)

"""Who may write in a run's folder, and what is said when nobody can."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from equfl.core.errors import RunError

try:
    import fcntl
except ImportError:  # Windows has no locks on folders; there the user has to take care
    fcntl = None  # type: ignore[assignment]


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Hold the folder until the block ends, however the process ends; somebody else's is refused."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(NotImplementedError):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"another process is writing in {folder}",
                    wanted="one process at a time",
                    remedy="Wait for it, or run in another folder",
                ) from None
            except OSError:
                pass  # a file system without locks
        yield
    finally:
        os.close(handle)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """The block writes; what the system has against it is told with what to do about it."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{folder} cannot be written ({error.strerror or error})",
            wanted="a folder with space, where files can be made",
            remedy="Make room or choose another folder; a run that had begun goes on with 'equfl resume'",
        ) from error

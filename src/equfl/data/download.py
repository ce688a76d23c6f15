"""Files from the web: whole and as they were sent, or not at all."""

import hashlib
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

from equfl.data.base import Progress
from equfl.data.replacing import replacing

CHUNK = 1 << 18
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which it is worth asking again."""


def fetch(
    url: str,
    path: Path,
    *,
    whole: Callable[[Path], bool] = lambda path: True,
    tries: int = 4,
    wait: float = 1.0,
    timeout: float = 30.0,
    progress: Progress = lambda task, done, total: None,
) -> None:
    """Download to ``path`` and write the file's SHA-256 beside it, in the format of ``sha256sum``.

    What is shorter than announced, or not ``whole`` by the caller's own look at it, is thrown away and asked for again,
    after ``wait``, twice and four times as many seconds. Whatever goes wrong for good is raised as an ``OSError``.
    """
    for attempt in range(tries):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            return _fetch_once(url, path, whole, timeout, progress)
        except HTTPError as error:
            error.close()
            reason: Exception = OSError(f"{url} answered {error.code} {error.reason}")
            if error.code not in PASSING:
                break
        except (ConnectionError, TimeoutError, HTTPException, urllib.error.URLError, _Truncated) as error:
            reason = OSError(f"{url} gave no whole file ({error})")
    raise reason


def intact(path: Path) -> bool:
    """Whether the file is still what was downloaded; one that was put there by hand has nothing to differ from."""
    written = _checksum_file(path)
    if not written.exists():
        return True
    with path.open("rb") as file:
        return written.read_text().split()[:1] == [hashlib.file_digest(file, "sha256").hexdigest()]


class _Truncated(Exception):
    pass


def _fetch_once(url: str, path: Path, whole: Callable[[Path], bool], timeout: float, progress: Progress) -> None:
    checksum = hashlib.sha256()
    with replacing(path) as fresh:
        with closing(urllib.request.urlopen(url, timeout=timeout)) as answer, fresh.open("wb") as file:
            total, done = int(answer.headers.get("Content-Length") or 0), 0
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                checksum.update(chunk)
                done += len(chunk)
                progress(f"download {path.name}", done, total)
        if (total and done != total) or not whole(fresh):
            raise _Truncated(f"{done} of {total or 'unknown'} bytes")
        with replacing(_checksum_file(path)) as beside:
            beside.write_text(f"{checksum.hexdigest()}  {path.name}\n")


def _checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")

"""Where files lie on the user's machine, and federations that are prepared once and read many times."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_dir

from equfl.core.errors import DataMissing
from equfl.data import federation_file
from equfl.data.base import Dataset, Federation


def folder() -> Path:
    """The folder named by ``EQUFL_CACHE``, or the user's own cache."""
    return Path(os.environ.get("EQUFL_CACHE") or user_cache_dir("equfl"))


def data_folder() -> Path | None:
    """The folder with the user's own copies of public data, named by ``EQUFL_DATA``."""
    named = os.environ.get("EQUFL_DATA")
    if named and not Path(named).is_dir():
        raise DataMissing(
            f"EQUFL_DATA names {named}, where no folder is",
            wanted="a folder with data files",
            remedy="Correct the name, or unset EQUFL_DATA",
        )
    return Path(named) if named else None


def offline() -> bool:
    """Whether ``EQUFL_OFFLINE`` forbids downloads."""
    return os.environ.get("EQUFL_OFFLINE", "") not in ("", "0")


def prepared(dataset: Dataset, sources: Iterable[Path], build: Callable[[], Federation]) -> Federation:
    """What ``build`` gives, read from the cache if it was built before from the same files with the same settings.

    A damaged file in the cache is built again, and where nothing can be written nothing is kept: it is only a cache.
    Its files are readable by the user alone, since a user's own table may end up there.
    """
    path = folder() / "prepared" / f"{dataset.name}-{_identity(dataset, sources)}.safetensors"
    federation = federation_file.read(path)
    if federation is None:
        federation = build()
        try:
            federation_file.write(federation, path)
        except OSError as error:
            warnings.warn(f"The prepared rows are not kept: {error}. EQUFL_CACHE names another folder.", stacklevel=2)
    return federation


def _identity(dataset: Dataset, sources: Iterable[Path]) -> str:
    files = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    fields = asdict(dataset)  # type: ignore[call-overload]
    facts = [federation_file.FORMAT, version("equfl"), dataset.name, fields, files]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

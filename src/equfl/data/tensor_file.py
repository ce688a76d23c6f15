"""Named tensors and what is known of them as one safetensors file: read as they were written, or not at all."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from equfl.data.replacing import replacing


def write(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], *, sync: bool = True) -> None:
    """Write the file, all at once; ``about`` is anything that JSON can say, and stands in the file's header."""
    ready = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    # The format knows no two names for one piece of memory; what is told apart by name is written twice.
    first = {value.untyped_storage().data_ptr(): name for name, value in reversed(ready.items())}
    ready = {
        name: value if first[value.untyped_storage().data_ptr()] == name else value.clone()
        for name, value in ready.items()
    }
    checksums = {name: _checksum(value) for name, value in ready.items()}
    facts = {"about": about, "about_checksum": _checksum_of_text(about), "checksums": checksums}
    with replacing(path, sync=sync) as fresh:
        # Bytes first, so that a full disk is an OSError like any other.
        fresh.write_bytes(save(ready, {"equfl": json.dumps(facts)}))


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The tensors and what is known of them; ``None`` if there is no file, or if it is not what was written."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["equfl"])
            if _checksum_of_text(facts["about"]) != facts["about_checksum"]:
                return None
            tensors = {name: file.get_tensor(name) for name in facts["checksums"]}
        about: dict[str, Any] = facts["about"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    if any(_checksum(tensors[name]) != expected for name, expected in facts["checksums"].items()):
        return None
    return tensors, about


def _checksum(values: Tensor) -> int:
    # Type and shape belong to it: the same bytes say something else as whole numbers.
    return zlib.crc32(values.numpy().data, zlib.crc32(f"{values.dtype} {tuple(values.shape)}".encode()))


def _checksum_of_text(about: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(about).encode())

"""``environment.json``: what a run was computed with and on which rows: what it depends on beside its config."""

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equfl.data.base import Federation
from equfl.data.in_memory import fingerprint
from equfl.data.replacing import replacing

FORMAT = 2
"""Goes up when a folder of an older version cannot be gone on with."""

PACKAGES = ("equfl", "torch", "numpy")


def environment(federation: Federation) -> dict[str, Any]:
    """What the machine, the packages and the rows are."""
    return {
        "format": FORMAT,
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "data": {
            "name": federation.name,
            "clients": list(federation.clients),
            "train_rows": len(federation.train.pooled),
            "test_rows": len(federation.test.pooled),
            "groups": list(federation.schema.groups),
            "facts": dict(federation.facts),
            "fingerprint": fingerprint(federation),
        },
    }


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Packages of another version, which may compute the last bits differently."""
    return [
        f"{name} {there['packages'].get(name)} there, {mine} here"
        for name, mine in here["packages"].items()
        if there["packages"].get(name) != mine
    ]


def write_json(path: Path, content: Any) -> None:
    """The file, whole or not at all."""
    with replacing(path) as fresh:
        fresh.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")

"""What stands in a finished run's folder, read without anything heavy."""

import json
from pathlib import Path
from typing import Any

from equfl.core.errors import Damaged, RunError


def result_of(path: Path) -> dict[str, Any] | None:
    """The result in a run's folder; ``None`` as long as it is not finished."""
    return read_json(path / "result.json")


def finished_result(path: Path) -> dict[str, Any]:
    """The result in a run's folder, which must be finished."""
    result = result_of(path)
    if result is None:
        begun = (path / "config.toml").exists()
        raise RunError(
            f"{path} holds {'a run that is not finished' if begun else 'no run'}",
            wanted="the folder of a finished run",
            remedy=f"Write 'equfl resume {path}'" if begun else "'equfl run' says at its end where its files are",
        )
    return result


def read_json(path: Path) -> dict[str, Any] | None:
    """What stands in a file of ours; ``None`` if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        content = error
    if not isinstance(content, dict):
        raise Damaged(
            f"{path} is damaged",
            wanted="the file as it was written",
            remedy="Delete it, and 'equfl resume' writes it again",
        )
    return content

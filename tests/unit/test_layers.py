"""Who may import whom, as docs/architecture.md draws it; read off every import statement there is."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import equfl

SOURCE = Path(equfl.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

PURE = ("core", "fairness", "privacy", "aggregation", "synthesis", "calibration", "training", "models", "methods")
WITH_COMPONENTS = (*(room for room in PURE if room not in ("core", "privacy")), "data", "simulation.engines")
BASES = {f"{room}.base" for room in WITH_COMPONENTS}
MAY = {
    "core": set(),
    "fairness": {"core"},
    "privacy": {"core"},
    "aggregation": {"core"},
    "synthesis": {"core", "models.base"},
    "calibration": {"core", "fairness"},
    "training": {"core", "privacy"},
    "models": {"core"},
    "methods": {*PURE},
    "data": {"core", "fairness.neighbours"},
    "simulation": {*PURE, "data.base"},
    "config": {"core", *BASES},
    "runs": {"core", "fairness", "config", "data", "simulation", *BASES},
    "flower": {*PURE, "data.base", "simulation.clientside", "simulation.engines", "runs.checkpoint"},
    "plots": set(),
    "cli": {"plots", "core", "config", "data", "runs", *BASES},
}
"""Room -> the rooms and modules of ours that it may import, beside its own."""

PACKAGES = {
    "torch": MAY.keys(),
    "jaxtyping": MAY.keys(),
    "flwr": {"flower"},
    "numpy": {"fairness", "aggregation", "data", "flower"},
    "scipy": {"fairness"},
    "sklearn": {"aggregation"},
    "pyarrow": {"data", "runs"},
    "safetensors": {"data"},
    "platformdirs": {"data"},
    "yaml": {"config"},
    "tomli_w": {"config"},
    "matplotlib": {"plots"},
    "rich": {"cli"},
    "tyro": {"cli"},
    "dp_accounting": {"privacy"},
}
"""Package of others -> the rooms that may import it: who swaps one looks nowhere else."""

IMPURE = {"os", "pathlib", "io", "time", "datetime", "logging", "random", "tempfile", "shutil", "subprocess", "urllib"}
"""Files, clocks, logs and global randomness: not for the pure part."""


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by dots; full names can be searched for"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def allowed(room: str, module: str) -> bool:
    """Whether a room may import ``equfl.MODULE``."""
    return any(f"{module}.".startswith(f"{known}.") for known in {room, *MAY[room]})


ROOM_FILES = [path for path in FILES if path.parent != SOURCE]


@pytest.mark.parametrize("path", ROOM_FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_reaches_only_for_what_it_may_see(path):
    room = room_of(path)
    for module in imports(path):
        first, _, rest = module.partition(".")
        if first == "equfl":
            assert allowed(room, rest), f"{room} may not import {module}"
        elif first not in sys.stdlib_module_names:
            assert room in PACKAGES.get(first, ()), f"{room} may not import {first}"
        elif room in PURE:
            assert first not in IMPURE, f"{room} is pure and may not import {first}"


def test_every_room_has_its_rule_and_every_rule_its_room():
    assert {room_of(path) for path in ROOM_FILES} == set(MAY)


def test_no_two_rooms_import_each_other():
    rooms = {room: {known.partition(".")[0] for known in seen} - {room} for room, seen in MAY.items()}
    assert not [(room, other) for room, seen in rooms.items() for other in seen if room in rooms[other]]


def test_the_page_about_the_house_names_every_room():
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert all(f"  {room}/ " in page for room in MAY)


def test_a_forbidden_import_would_be_found():
    assert not allowed("core", "data.base")
    assert not allowed("data", "fairness.audit")
    assert not allowed("cli", "simulation.loop")
    assert allowed("data", "fairness.neighbours")

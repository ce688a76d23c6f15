"""``equfl new``: a project to start from."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from equfl.cli.parsing import option

KINDS = ("flower",)
NAME = "flower-census"
"""What the project is called in the template; its package has the same name with underscores."""


def new(
    kind: Annotated[Positional[str], option("flower")], folder: Annotated[Positional[str], option("DIR")], /
) -> int:
    """Make a project of your own out of a template, offline.

    Args:
        kind: What kind: 'flower' is a federation on many machines, as a Flower app.
        folder: The folder to make, which also names the project.
    """
    from equfl.cli.screen import Screen
    from equfl.core.errors import ConfigError

    if kind not in KINDS:
        raise ConfigError(f"no template is called {kind!r}", wanted=" or ".join(KINDS), remedy="See 'equfl new --help'")
    place = Path(folder).expanduser()
    name = place.resolve().name.lower()
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ConfigError(
            f"a folder called {place.name!r}",
            wanted="letters, digits and hyphens, a letter first: it names the project",
            remedy="Choose another name",
        )
    if place.exists() and any(place.iterdir()):
        raise ConfigError(f"{place} is not empty", wanted="a new folder", remedy="Choose another, or empty it")
    for path, text in rendered(kind, name).items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
    screen = Screen()
    screen.line(("Made", "green"), f" {place}: read its README.md first.")
    screen.blank()
    screen.line("The page to make your own: ", (str(place / name.replace("-", "_") / "task.py"), "cyan"))
    return 0


def rendered(kind: str, name: str) -> dict[str, str]:
    """The template's files, with the project's name in them."""
    package = name.replace("-", "_")

    def named(text: str) -> str:
        return text.replace(NAME.replace("-", "_"), package).replace(NAME, name)

    def walk(folder: Traversable, above: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in folder.iterdir():
            path = f"{above}{entry.name}"
            if entry.is_dir():
                found |= walk(entry, f"{path}/")
            else:
                found[named(path.removesuffix(".txt"))] = named(entry.read_text(encoding="utf-8"))
        return found

    # By path and not by import, so that a project can be made where Flower is not installed yet.
    return walk(files("equfl") / kind / "template", "")

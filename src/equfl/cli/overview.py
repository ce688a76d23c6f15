"""What ``equfl`` alone says: what there is, and what to type first."""

import platform
from importlib import import_module
from importlib.metadata import version

from equfl.cli.screen import Screen

FIRST = (
    ("equfl run quickstart", "offline, on a simulated census, in seconds"),
    ("equfl run people.csv --label hired --sensitive sex --client site", "your own table"),
    ("equfl describe", "all methods, data sets, rules and notions, and every setting"),
)


def show() -> None:
    """The commands and the first things to type."""
    from equfl.cli import COMMANDS

    screen = Screen()
    screen.prose("equfl: fair federated learning from the server's side.")
    screen.blank()
    screen.line(("Commands", "bold"))
    screen.pairs((name, _first_sentence(name)) for name in COMMANDS)
    screen.blank()
    screen.line(("To begin with", "bold"))
    for command, meaning in FIRST:
        screen.line((command, "cyan"), indent=2)
        screen.line((meaning, "dim"), indent=6)
    screen.blank()
    screen.line("Each command explains itself: equfl run --help")


def show_version() -> None:
    """The versions that an issue report needs."""
    Screen().line(f"equfl {version('equfl')} (torch {version('torch')}, Python {platform.python_version()})")


def _first_sentence(command: str) -> str:
    text = getattr(import_module(f"equfl.cli.{command}"), command).__doc__
    return text.partition("\n")[0].rstrip(".")

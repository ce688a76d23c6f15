"""From the words on the command line to a call of the command's function, by way of tyro."""

import difflib
import functools
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from typing import Any

import tyro

from equfl.core.errors import ConfigError

Command = Callable[..., int]


def option(metavar: str) -> Any:
    """An option whose value is handed on as text; help names it ``metavar`` and keeps quiet about 'default: None'."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="")


def spelled(options: Mapping[str, str | Sequence[str] | None]) -> list[str]:
    """The words that give these options once more; those without a value are left out."""
    several = {name: [value] if isinstance(value, str) else value or () for name, value in options.items()}
    return [word for name, values in several.items() for value in values for word in (name, value)]


def parse(command: Command, words: Sequence[str], name: str) -> Callable[[], int] | None:
    """The call that the words ask for; ``None`` if they asked for help, which is then already printed."""

    @functools.wraps(command)
    def later(*arguments: Any, **options: Any) -> Callable[[], int]:
        return functools.partial(command, *arguments, **options)

    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint):
            call, unknown = tyro.cli(later, prog=f"equfl {name}", args=list(words), return_unknown_args=True)
    except SystemExit as end:
        if not end.code:
            return None
        raise ConfigError(
            _first_words(complaint.getvalue()),
            wanted="the options as help shows them",
            remedy=f"See 'equfl {name} --help'",
        ) from None
    if unknown:
        raise _unknown(unknown, command, name)
    return call


def _unknown(words: Sequence[str], command: Command, name: str) -> ConfigError:
    help_command = f"equfl {name} --help"
    word = next((word for word in words if word.startswith("-")), None)
    if word is None:
        return ConfigError(
            f"one word too many: {words[0]!r}",
            wanted=f"what {help_command!r} shows",
            remedy="An option takes one value; write it again for another one",
        )
    known = [f"--{option.replace('_', '-')}" for option in command.__kwdefaults__ or {}]
    near = difflib.get_close_matches(word.partition("=")[0], known, n=1, cutoff=0.5)
    return ConfigError(
        f"unknown option {word!r}",
        wanted=f"one of {', '.join(known)}" if known else "no option",
        remedy=f"Did you mean {near[0]!r}" if near else f"See {help_command!r}",
    )


def _first_words(box: str) -> str:
    # tyro draws a box of several lines; the sentence is the first paragraph inside it.
    lines = [line.strip("│╭╮╰╯ \n") for line in box.splitlines()]
    sentence: list[str] = []
    for line in lines[1:]:
        if set(line) <= set("─-"):
            break
        sentence.append(line)
    return " ".join(sentence).rstrip(".") or " ".join(lines)

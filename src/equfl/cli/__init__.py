"""The command line: one file per command, one function in it.

Signatures and docstrings are the help text. Whatever a user types is handed on as text, so that the config's own checks
speak about it; what cannot be used is one line on stderr and exit code 2. Only the command that runs imports the rest.
"""

import difflib
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from equfl.cli.characters import forgive
from equfl.core.errors import ConfigError, EquflError

COMMANDS = ("run", "resume", "compare", "describe", "data", "new")

STOPPED = 130
"""What a shell reports for a command that was stopped with Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one command."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    forgive(sys.stdout)
    forgive(sys.stderr)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *rest, **more: complain(str(message))
            code = _dispatch(words)
            if sys.stdout:
                sys.stdout.flush()
            return code
    except EquflError as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt as stopped:
        complain(str(stopped) or "Stopped.")
        return STOPPED
    except BrokenPipeError:
        _discard_output()  # the reader has seen enough, as in 'equfl describe | head'
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        complain(f"{place}{error.strerror or error}; wanted files that can be read and written. Check place and space.")
        _discard_output()
        return 2


def complain(message: str) -> None:
    """One line on stderr, whatever stands in the message."""
    line = " ".join(message.splitlines())
    printable = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)
    if sys.stderr:
        with suppress(OSError):  # nobody listens
            print(f"equfl: {printable}", file=sys.stderr)


def _dispatch(words: list[str]) -> int:
    from equfl.cli import overview, parsing

    if not words or words[0] in ("-h", "--help", "help"):
        overview.show()
        return 0
    if words[0] in ("-V", "--version", "version"):
        overview.show_version()
        return 0
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        raise ConfigError(
            f"no command is called {name!r}",
            wanted=f"one of {', '.join(COMMANDS)}",
            remedy=f"Did you mean 'equfl {near[0]}'" if near else "See 'equfl --help'",
        )
    command = getattr(import_module(f"equfl.cli.{name}"), name)
    call = parsing.parse(command, rest, name)
    return 0 if call is None else call()


def _discard_output() -> None:
    # What is still in the buffer would be written when the interpreter ends, and fail once more.
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

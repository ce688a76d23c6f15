"""What all commands print with: calm on a terminal, plain text in a pipe."""

import textwrap
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

WIDEST = 100
"""Longer lines of prose are hard to read, however wide the terminal is."""

Part = str | Text | tuple[str, str]
"""Words, or words and their style."""


class Screen:
    """Standard output, or the stream for errors, line by line.

    Rich knows whether colours are wanted and how wide the terminal is. Lines are made here: they do not end in blanks,
    and what a user has named is text and never markup.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self.console = _Console(stderr=stderr, highlight=False, markup=False, emoji=False)
        self.width = min(self.console.width, WIDEST)

    def line(self, *parts: Part, indent: int = 0) -> None:
        """One line, never broken, so that a path or a command in it can be copied."""
        line = Text(" " * indent).append_text(Text.assemble(*parts))
        line.rstrip()
        self.console.print(line, soft_wrap=True)

    def prose(self, text: str, *, indent: int = 0, first: Part = "", style: str = "") -> None:
        """Text that is broken between words; every line but the ``first`` is indented."""
        start = Text.assemble(first)
        room = max(20, self.width - indent)
        wrapped = [line for part in text.split("\n") for line in textwrap.wrap(part, room, break_on_hyphens=False)]
        lead = max(0, indent - cell_len(start.plain))
        for number, words in enumerate(wrapped or [""]):
            if number == 0:
                self.line(*(start,) if first else (), " " * lead, (words, style))
            else:
                self.line((words, style), indent=indent)

    def pairs(self, rows: Iterable[tuple[str, str]], *, indent: int = 2, style: str = "") -> None:
        """Names and what is said about them, in two columns."""
        rows = list(rows)
        column = indent + max((cell_len(name) for name, _ in rows), default=0) + 2
        for name, text in rows:
            self.prose(text, indent=column, first=(" " * indent + name, style))

    def blank(self) -> None:
        self.console.print()

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Part]], *, indent: int = 2) -> None:
        """Numbers under a header: the first column is a name, the others end where their header ends."""
        texts = [[Text.assemble(cell) for cell in row] for row in ([(title, "bold") for title in header], *rows)]
        widths = [max(row[column].cell_len for row in texts) for column in range(len(header))]
        for number, row in enumerate(texts):
            cells = [
                _padded(cell, width, left=column == 0)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            self.line(Text("  ").join(cells), indent=indent)
            if number == 0:
                self.line(("─" * (sum(widths) + 2 * (len(widths) - 1)), "dim"), indent=indent)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich would end the program with exit code 1; that a reader has seen enough is not an error.
        raise BrokenPipeError


def _padded(cell: Text, width: int, *, left: bool) -> Text:
    blanks = " " * (width - cell.cell_len)
    return cell + blanks if left else Text(blanks) + cell

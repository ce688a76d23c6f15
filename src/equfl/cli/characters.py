"""Characters that the terminal's encoding lacks, spelled with others: no name or formula may end a command."""

import codecs
import io
import unicodedata

SPELLED = {
    "─": "-",
    "│": "|",
    "╭": "+",
    "╮": "+",
    "╰": "+",
    "╯": "+",
    "±": "+-",
    "−": "-",
    "·": "*",
    "…": "...",
    "†": "+",
    "∇": "grad ",
}


def forgive(stream: object) -> None:
    """From now on the stream spells what it cannot write instead of failing."""
    codecs.register_error("equfl.spelled", spelled)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="equfl.spelled")


def spelled(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: our own signs by their likeness, Greek letters by name, others as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_spell, error.object[error.start : error.end])), error.end


def _spell(character: str) -> str:
    alphabet, _, rest = unicodedata.name(character, "").partition(" ")
    if alphabet == "GREEK":
        return rest.rpartition(" ")[2].lower()
    return SPELLED.get(character) or ascii(character)[1:-1]

"""The pages of ``equfl describe``."""

from collections.abc import Iterator, Sequence

from equfl.cli.catalogue import Shelf, about, first_sentence
from equfl.cli.disclosures import HEADER, by_group, declared, rules
from equfl.cli.fields import Setting, settings
from equfl.cli.screen import Screen
from equfl.config.files import config_text
from equfl.config.presets import load_preset, presets
from equfl.config.schema import RunConfig
from equfl.core.component import find
from equfl.methods.base import Method

SHORT = {"method": "--method ", "target": "--target "}
"""The settings that have an option of their own."""


def contents(shelves: dict[str, Shelf]) -> None:
    """All kinds and what there is of each."""
    screen = Screen()
    for shelf in shelves.values():
        _shelf(screen, shelf)
        screen.blank()
    screen.line(("preset", "bold"), f"  {', '.join(presets())}")
    screen.blank()
    screen.line("What one is and its settings:  ", ("equfl describe equfl", "cyan"))
    screen.line("The settings of a run:         ", ("equfl describe run", "cyan"))
    screen.line("The presets:                   ", ("equfl describe preset", "cyan"))
    screen.line("What leaves a client:          ", ("equfl describe privacy", "cyan"))


def kind(shelf: Shelf) -> None:
    """All components of one kind."""
    screen = Screen()
    _shelf(screen, shelf)
    screen.blank()
    screen.line("More:  ", (f"equfl describe {shelf.kind} {next(iter(shelf.components), '')}", "cyan"))


def component(shelf: Shelf, name: str) -> None:
    """One component: what it is, its fields, how to choose it."""
    cls = find(shelf.base, name)
    screen = Screen()
    screen.line((name, "bold"), f"  ({shelf.kind})", ("" if _ours(cls) else f"  from {cls.__module__}", "dim"))
    screen.blank()
    for paragraph in paragraphs(about(cls)):
        screen.prose(paragraph, indent=2)
        screen.blank()
    fields = settings(cls)
    _settings(screen, fields)
    if issubclass(cls, Method):
        _leaves(screen, name)
    command = f"equfl run {SHORT.get(shelf.path, f'--set {shelf.path}=')}{name}"
    screen.line("To use it:    ", (command, "cyan"))
    if fields:
        value = (fields[0].default or "VALUE").strip('"') or "VALUE"
        screen.line("To change it: ", (f"{command} --set {shelf.path}.{fields[0].name}={value}", "cyan"))


def run_settings() -> None:
    """The fields of a run's config."""
    screen = Screen()
    screen.prose(" ".join(about(RunConfig).split()))
    screen.blank()
    _settings(screen, settings(RunConfig))
    screen.line("In a file, as TOML, or one by one:  ", ("equfl run --set rounds=20", "cyan"))


def all_presets() -> None:
    """The presets, each with the line that says what it is."""
    screen = Screen()
    screen.line(("preset", "bold"), "  a config that comes with equfl")
    screen.pairs(presets().items())
    screen.blank()
    screen.line("To use one:          ", ("equfl run quickstart", "cyan"))
    screen.line("All its settings:    ", ("equfl describe preset quickstart", "cyan"))


def one_preset(name: str) -> None:
    """A preset with every setting written out: a config file to start from."""
    text = config_text(load_preset(name))
    screen = Screen()
    screen.line((f"# {presets()[name]}", "dim"))
    for line in text.splitlines():
        screen.line(line)


def privacy() -> None:
    """What leaves a client with every method, and who can do with sums."""
    screen, everything, (sums, single) = Screen(), declared(), rules()
    screen.line(("privacy", "bold"), "  what leaves a client, by the methods' own declarations")
    screen.blank()
    _columns(screen, [HEADER, *(row for one in everything for row in one.rows())])
    screen.blank()
    screen.prose(
        "Where sums suffice, the method runs with secure_sum = true: its server sees the sum over the clients and "
        "nothing of any single one."
    )
    screen.blank()
    screen.prose(f"Rules that need only sums: {', '.join(sums)}.")
    screen.prose(f"Rules that must see each client's update: {', '.join(single) or 'none'}.")
    screen.prose(f"A prediction needs the person's group: {', '.join(by_group(everything))}.")
    screen.blank()
    screen.line("To see only sums:  ", ("equfl run quickstart --set secure_sum=true", "cyan"))


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a docstring as running text; what is indented or a list keeps its lines."""
    for paragraph in filter(None, text.replace("``", "").split("\n\n")):
        lines = paragraph.splitlines()
        running = not any(line.startswith((" ", "- ", "* ", "=")) for line in lines)
        yield " ".join(lines) if running else paragraph


def _leaves(screen: Screen, name: str) -> None:
    """What leaves a client with that method, in a sentence for each choice of settings that matters."""
    for one in declared():
        if one.label.partition(",")[0] == name:
            things = [f"{what} ({numbers}, {when})" if when else what for _, what, numbers, when, _ in one.rows()]
            sums = "" if one.only_sums else "; their sums do not suffice"
            screen.prose(f"Leaves a client{one.label.removeprefix(name)}: {'; '.join(things)}{sums}.")
    screen.blank()


def _columns(screen: Screen, rows: Sequence[Sequence[str]]) -> None:
    """Words in columns, the first row being the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        words = "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True))
        screen.line((words, "bold" if number == 0 else ""), indent=2)


def _shelf(screen: Screen, shelf: Shelf) -> None:
    screen.prose(shelf.meaning, indent=len(shelf.kind) + 2, first=(shelf.kind, "bold"))
    screen.pairs((name, first_sentence(cls)) for name, cls in shelf.components.items())


def _settings(screen: Screen, fields: list[Setting]) -> None:
    for field in fields:
        screen.line((field.assignment, "bold"), (f"  ({field.type})", "dim"), indent=2)
        for paragraph in paragraphs(field.meaning):
            screen.prose(paragraph, indent=6)
    if fields:
        screen.blank()


def _ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]

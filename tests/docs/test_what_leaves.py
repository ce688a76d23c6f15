"""The page on what leaves a client says what the methods declare, word for word."""

from pathlib import Path

from equfl.cli import main
from equfl.cli.disclosures import HEADER, by_group, declared, rules
from equfl.core.component import known
from equfl.methods.base import Method

PAGE = Path(__file__).parents[2] / "docs" / "what-leaves.md"


def ours() -> list:
    return [one for one in declared() if known(Method)[one.label.partition(",")[0]].__module__.startswith("equfl.")]


def table() -> str:
    rows = [HEADER, tuple("---" for _ in HEADER), *(row for one in ours() for row in one.rows())]
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows)


def test_the_table_of_what_leaves_a_client_is_that_of_the_declarations():
    assert table() in PAGE.read_text(encoding="utf-8"), f"docs/what-leaves.md should have this table:\n{table()}"


def test_the_rules_and_the_methods_that_need_the_group_are_named():
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    sums, single = rules()
    assert f"Rules that need only sums: {', '.join(f'`{name}`' for name in sums)}." in page
    assert f"Rules that must see single updates: {', '.join(f'`{name}`' for name in single)}." in page
    assert f"A prediction needs the person's group with {', '.join(f'`{name}`' for name in by_group(ours()))}." in page


def test_the_command_shows_every_line_of_the_table(capsys):
    assert main(["describe", "privacy"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for one in ours():
        for row in one.rows():
            assert " ".join(" ".join(row).split()) in text

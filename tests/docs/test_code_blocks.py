"""Whatever README and docs tell a reader to type works as it stands there."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EQUFL = [sys.executable, "-c", "import sys; from equfl.cli import main; sys.exit(main())"]


def blocks(language: str) -> Iterator[pytest.param]:
    """The fenced blocks in a language, named by page and line."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text[: found.start()].count("\n") + 1
            yield pytest.param(found[1], id=f"{page.relative_to(ROOT)}:{line}")


@pytest.fixture
def reader(tmp_path, monkeypatch) -> Path:
    """A folder such as a reader has: a table of people in it, and nothing prepared."""
    rows = [
        f"{20 + n % 40},{('school', 'college', 'none')[n % 5 % 3]},{'fm'[n % 2]},site {n % 4},"
        f"{'yes' if (n * 7) % 10 < 4 + 2 * (n % 2) else 'no'}"
        for n in range(800)
    ]
    (tmp_path / "people.csv").write_text("\n".join(["age,education,sex,site,hired", *rows]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUFL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def run(words: list[str]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", [*blocks("python")])
def test_python_runs(reader, code):
    run([sys.executable, "-c", code])


@pytest.mark.parametrize("block", [*blocks("sh")])
def test_the_commands_of_a_block_run_one_after_another(reader, block):
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif words:
            assert words[0] == "equfl"
            run([*EQUFL, *words[1:]])


@pytest.mark.parametrize("text", [*blocks("json")])
def test_json_is_json(text):
    json.loads(text)


def test_the_readme_shows_what_make_run_ends_with():
    from equfl.config.presets import load_preset
    from equfl.core.component import known
    from equfl.fairness.base import Notion

    config = load_preset("quickstart")
    (shown,) = re.findall(r"^\n```\n(.*?)^```$", PAGES[0].read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    title = f"{config.method.name} on simulated census (simulated), target {config.target.name.replace('_', ' ')}, "
    assert shown.startswith(f"{title}{config.rounds} rounds, seed {config.seed}\n")
    assert re.search(rf"^ +fedavg +{config.method.name} +change$", shown, re.MULTILINE)
    single = [name for name, notion in known(Notion).items() if notion().parts() == (notion(),)]
    for row in ("accuracy", *(name.replace("_", " ") for name in single)):
        assert re.search(rf"^  {row} +[\d.]+ ", shown, re.MULTILINE)
    for line in ("Seconds:  data ", "Files:    runs/quickstart-", "Next:     equfl run quickstart "):
        assert line in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_repository_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_mentioned_exists(page):
    from equfl.cli import COMMANDS

    for command in re.findall(r"`equfl ([a-z]+)", page.read_text(encoding="utf-8")):
        assert command in COMMANDS, command

"""``equfl describe``: everything that can be chosen, with every setting, so that no one has to read the source."""

import re
from dataclasses import dataclass

import pytest

from equfl.cli import main
from equfl.cli.catalogue import shelves
from equfl.cli.fields import settings
from equfl.config.files import read_config
from equfl.config.presets import load_preset, presets
from equfl.config.schema import RunConfig
from equfl.methods.base import Method

COMPONENTS = [
    (shelf.kind, name, cls)
    for shelf in shelves().values()
    for name, cls in shelf.components.items()
    if not cls.__module__.startswith("test")
]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["describe", *words]) == 0
    return capsys.readouterr().out


def test_all_kinds_and_all_components_are_listed(capsys):
    text = said(capsys)
    for kind, name, _ in COMPONENTS:
        assert re.search(rf"^{kind}\b", text, re.MULTILINE)
        assert re.search(rf"^  {name}\b", text, re.MULTILINE)
    assert all(name in text for name in presets())


@pytest.mark.parametrize(("kind", "name", "cls"), COMPONENTS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_component_shows_every_setting_with_its_type_and_default(capsys, kind, name, cls):
    text = said(capsys, kind, name)
    for setting in settings(cls):
        assert f"{setting.assignment}  ({setting.type})" in text


@pytest.mark.parametrize(
    ("name", "leaves"),
    [
        ("regular", "Leaves a client: as with fedavg."),
        (
            "reweight",
            "Leaves a client, scope = global: as with fedavg; training rows by label and group (labels x groups,",
        ),
        (
            "fairfed",
            "(labels x labels x groups, each round); their sums do not suffice.",
        ),
    ],
)
def test_a_method_says_what_leaves_a_client(capsys, name, leaves):
    assert leaves in " ".join(said(capsys, name).split())


def test_a_component_is_found_by_its_name_alone(capsys):
    assert said(capsys, "fedavg") == said(capsys, "method", "fedavg")


def test_a_kind_is_also_known_by_its_place_in_the_config(capsys):
    assert said(capsys, "target") == said(capsys, "notion")


def test_the_settings_of_a_run_are_those_of_its_config(capsys):
    text = said(capsys, "run")
    assert "rounds = 100  (whole number)" in text
    assert "  data  (data)" in text, "what has no default is shown without one"
    assert all(f"\n  {setting.name}" in text for setting in settings(RunConfig))


@pytest.mark.parametrize("name", presets())
def test_a_preset_is_shown_as_a_config_file_that_can_be_used(capsys, tmp_path, name):
    (tmp_path / "copy.toml").write_text(said(capsys, "preset", name))
    assert read_config(tmp_path / "copy.toml") == load_preset(name)


def test_a_misspelt_name_is_one_line_with_the_nearest_and_exit_code_2(capsys):
    assert main(["describe", "fedagv"]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert "'fedagv'" in streams.err
    assert "Did you mean 'equfl describe fedavg'" in streams.err


def test_no_line_is_wider_than_a_narrow_terminal_but_for_settings_and_commands(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    long = [line for line in said(capsys, "equfl").splitlines() if len(line) > 40]
    assert all(re.match(r"To (use|change) it:|  \w+ = ", line) for line in long)


def test_a_method_of_somebody_elses_with_a_setting_that_must_be_given_does_not_disturb(capsys):
    @dataclass(frozen=True)
    class Demanding(Method, name="demanding"):
        strength: float

    try:
        assert "fedfb" in said(capsys, "privacy")
        assert "strength  (number)" in said(capsys, "method", "demanding")
    finally:
        Method._known.pop("demanding")

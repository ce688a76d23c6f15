from pathlib import Path

import pytest

from equfl.config.request import as_name, notion_named, requested, started
from equfl.core.errors import ConfigError
from equfl.data.table import Table


def test_a_word_without_suffix_is_a_preset():
    assert requested(started("income-race")).preset == "income-race"


def test_a_preset_is_meant_even_where_a_folder_of_the_same_name_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").mkdir()
    with pytest.raises(ConfigError, match="quickstart is a folder"):
        started("quickstart")


def test_what_has_a_suffix_is_a_table_whose_columns_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = requested(started("people.csv", label="hired", sensitive=["sex", "race"], client="site"))
    expected = Table(path=str(Path("people.csv").absolute()), label="hired", sensitive=("sex", "race"), client="site")
    assert (config.data, config.preset) == (expected, "people")


def test_the_path_of_a_table_stands_for_the_same_file_from_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Path(started("people.csv")["data"]["path"]).is_absolute()


def test_a_config_file_is_named_after_itself_unless_it_says_otherwise(tmp_path):
    (tmp_path / "mine.toml").write_text('data = "toy"')
    (tmp_path / "theirs.yaml").write_text("data: toy\npreset: special")
    assert requested(started(str(tmp_path / "mine.toml"))).preset == "mine"
    assert requested(started(str(tmp_path / "theirs.yaml"))).preset == "special"


def test_columns_belong_to_tables_only():
    with pytest.raises(ConfigError, match="--client was given with 'quickstart', which is not a table"):
        started("quickstart", client="site")


def test_a_later_word_overrules_an_earlier_one():
    config = requested(
        started("quickstart"), options=[("seed", "3"), ("method", None)], settings=["seed=4", "rounds=5", "rounds=6"]
    )
    assert (config.seed, config.rounds, config.method.name) == (4, 6, "equfl")


def test_an_option_is_a_number_or_a_text_and_nothing_else():
    with pytest.raises(ConfigError, match="seed = '\\[1\\]'; wanted a whole number"):
        requested(started("quickstart"), options=[("seed", "[1]")])


@pytest.mark.parametrize(
    ("word", "name"),
    [("EO", "equalized_odds"), ("cal", "calibration"), ("demographic-parity", "demographic_parity"), ("odd", "odd")],
)
def test_a_notion_is_known_by_its_symbol_too(word, name):
    assert notion_named(word) == name


def test_a_hyphen_stands_for_an_underscore():
    assert as_name("random-calibration") == "random_calibration"

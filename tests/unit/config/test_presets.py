"""The presets."""

import pytest

from equfl.config.presets import load_preset, presets, read_preset
from equfl.core.errors import ConfigError, EquflError
from equfl.data.toy import Toy


def test_the_papers_census_tasks_and_the_quickstart_are_there() -> None:
    assert list(presets()) == ["employment-sex", "health-sex", "income-race", "income-sex", "quickstart"]


def test_the_quickstart_says_that_it_is_simulated() -> None:
    assert "simulated" in presets()["quickstart"]


def test_a_preset_remembers_its_name() -> None:
    assert read_preset("income-race")["preset"] == "income-race"


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'income-sex'"):
        read_preset("income-sx")


def test_a_preset_is_loaded_with_settings_changed() -> None:
    settings = {"data": Toy(rows=10), "method": "fedavg", "engine": "serial", "training.batch_size": 8, "rounds": 3}
    config = load_preset("quickstart", **settings)
    assert (config.data, config.rounds, str(config.method)) == (Toy(rows=10), 3, "fedavg")
    assert str(config.training) == "sgd(batch_size=8)"


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(EquflError, match=r"^runds: unknown key"):
        load_preset("quickstart", data="toy", runds=3)

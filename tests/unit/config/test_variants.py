"""Which configs a comparison asks for."""

import pytest

from equfl.config.presets import read_preset
from equfl.config.variants import seeds_named, variants
from equfl.core.component import known
from equfl.core.errors import ComponentError, ConfigError
from equfl.data.toy import Toy
from equfl.methods.base import Method


def asked(**words):
    plain = {**read_preset("quickstart"), "data": words.pop("data", "toy")}
    return variants(plain, **{"methods": "equfl", "targets": "EO", "seeds": "2", **words})


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (0, 1, 2)), ("2001-2003", (2001, 2002, 2003)), ("3, 9,7", (3, 9, 7)), ("7,", (7,)), ("1-2,2", (1, 2))],
)
def test_seeds_are_how_many_or_which(text, seeds):
    assert seeds_named(text) == seeds


@pytest.mark.parametrize("text", ["0", "", "x", "1,x", "5-3", "1-2-3", "-1", "100000", "0-100000", ",", "1.5"])
def test_other_seeds_are_refused(text):
    with pytest.raises(ConfigError, match="5, 2001-2005 or 3,7,9"):
        seeds_named(text)


def test_fedavg_is_always_there_once_per_seed_whatever_the_targets():
    configs, refused = asked(targets="EO,DP")
    assert not refused
    assert list(configs) == ["equalized_odds", "demographic_parity"]
    eo, dp = configs.values()
    assert [(config.method.name, config.seed) for config in eo] == [
        ("fedavg", 0), ("equfl", 0), ("fedavg", 1), ("equfl", 1),
    ]  # fmt: skip
    assert eo[::2] == dp[::2]
    assert [config.target.name for config in dp[1::2]] == ["demographic_parity"] * 2
    assert not any(config.baseline for config in (*eo, *dp)), "FedAvg is shared and not run beside each"


def test_all_are_all():
    configs, refused = asked(methods="all", seeds="1")
    methods = {config.method.name for config in configs["equalized_odds"]} | {one.method for one in refused}
    assert methods == set(known(Method))


def test_a_setting_of_a_method_is_for_those_that_have_it():
    configs, _ = asked(settings=["method.gamma=0.25", "rounds=7"], seeds="1")
    fedavg, equfl = configs["equalized_odds"]
    assert equfl.method.gamma == 0.25
    assert (fedavg.rounds, equfl.rounds) == (7, 7)
    with pytest.raises(ConfigError, match=r"method\.gama=1', which none of the methods has"):
        asked(settings=["method.gama=1"])


def test_the_split_changes_with_the_seed_if_asked_to():
    configs, _ = asked(split_by_seed=True)
    assert [config.data for config in configs["equalized_odds"][::2]] == [Toy(seed=0), Toy(seed=1)]


def test_a_method_that_the_rest_of_the_config_excludes_is_named_with_the_reason_and_not_run():
    refusing = next(name for name, method in known(Method).items() if name != "fedavg" and method.aggregates_itself)
    configs, refused = asked(methods=f"{refusing},equfl", settings=["aggregation=median"], seeds="1")
    assert [config.method.name for config in configs["equalized_odds"]] == ["fedavg", "equfl"]
    assert [(one.method, one.target) for one in refused] == [(refusing, "equalized_odds")]
    assert "aggregation" in refused[0].reason


@pytest.mark.parametrize("words", [{"methods": "equfel"}, {"targets": "EQ"}, {"methods": ","}, {"settings": ["x=1"]}])
def test_what_is_unknown_for_all_is_an_error(words):
    with pytest.raises((ConfigError, ComponentError)):
        asked(**words)

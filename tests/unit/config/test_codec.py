"""The plain form of a config: what is refused, and in which words."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from equfl.config.codec import config_hash, from_dict, to_dict
from equfl.config.schema import RunConfig
from equfl.core.errors import ConfigError, EquflError
from equfl.data.toy import Toy
from equfl.methods.base import Method
from equfl.methods.fedavg import FedAvg
from equfl.simulation.engines.serial import Serial
from equfl.training.sgd import SGD

BASE = RunConfig(data=Toy(), method=FedAvg(), engine=Serial())


@dataclass(frozen=True)
class Everything(Method, name="test_everything"):
    """One field of each kind that a config can say."""

    plain: float
    inner: Method = FedAvg()
    word: Literal["none", "some", 3] = "none"
    pair: tuple[int, str] = (1, "a")
    many: tuple[float, ...] = ()
    either: int | str = 1
    perhaps: float | None = 2.0
    switch: bool = False


def method(**settings: Any) -> Method:
    return from_dict({**to_dict(BASE), "method": {"name": "test_everything", "plain": 1.0, **settings}}).method


def complaint(plain: dict[str, Any]) -> str:
    with pytest.raises(EquflError) as caught:
        from_dict(plain)
    return str(caught.value)


def test_a_bare_name_is_a_component_with_its_defaults() -> None:
    assert from_dict({"data": "toy", "method": "fedavg", "engine": "serial"}).method == FedAvg()


def test_a_section_without_a_name_changes_the_default_component() -> None:
    config = from_dict({"data": "toy", "method": "fedavg", "engine": "serial", "training": {"batch_size": 16}})
    assert config.training == SGD(batch_size=16)


def test_only_the_data_has_no_default() -> None:
    assert complaint({"method": "fedavg"}) == "data: missing; wanted a value. It has no default; write it down."


def test_a_field_without_a_default_must_be_given() -> None:
    assert complaint({**to_dict(BASE), "method": "test_everything"}).startswith("method.plain: missing")


def test_components_within_components_are_read_and_their_paths_named() -> None:
    inner = {"name": "test_everything", "plain": 2.0}
    assert method(inner=inner).inner == Everything(2.0)
    with pytest.raises(ConfigError, match=r"^method\.inner\.plan: unknown key; wanted one of plain, .*'plain'"):
        method(inner={**inner, "plan": 1})


@pytest.mark.parametrize(
    ("settings", "found", "wanted"),
    [
        ({"plain": "1.0"}, "method.plain = '1.0'", "a number"),
        ({"plain": True}, "method.plain = True", "a number"),
        ({"plain": None}, "method.plain = None", "a number"),
        ({"switch": 1}, "method.switch = 1", "true or false"),
        ({"word": "soem"}, "method.word = 'soem'", "one of 'none', 'some', 3"),
        ({"pair": [1]}, "method.pair = [1]", "a list of 2"),
        ({"pair": ["1", "a"]}, "method.pair[0] = '1'", "a whole number"),
        ({"many": "12"}, "method.many = '12'", "a list"),
        ({"many": [1, "2"]}, "method.many[1] = '2'", "a number"),
        ({"either": 1.5}, "method.either = 1.5", "a whole number or a text"),
        ({"perhaps": "2"}, "method.perhaps = '2'", "a number"),
        ({"inner": 3}, "method.inner = 3", "the name of a method, or a section with a name"),
        ({"inner": {"name": 3}}, "method.inner.name = 3", "the name of a method"),
        ({3: 1}, "method.3: unknown key", "one of plain, inner, word, pair, many, either, perhaps, switch"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(settings: Any, found: str, wanted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict({**to_dict(BASE), "method": {"name": "test_everything", "plain": 1.0, **settings}})
    assert (caught.value.found, caught.value.wanted) == (found, wanted)


def test_whole_numbers_stand_for_numbers_but_not_the_other_way_round() -> None:
    assert type(method(plain=2).plain) is float  # type: ignore[attr-defined]
    assert complaint({**to_dict(BASE), "rounds": 10.0}).startswith("rounds = 10.0; wanted a whole number")


@pytest.mark.parametrize("word", [None, "none"])
def test_none_has_a_word_for_formats_that_lack_it(word: Any) -> None:
    assert method(perhaps=word) == Everything(1.0, perhaps=None)
    assert method(word="none") == Everything(1.0)


def test_every_kind_of_field_survives_the_plain_form() -> None:
    config = replace(BASE, method=Everything(0.1, Everything(1e-9), 3, (2, "b"), (1.0, 2.5), "x", None, True))
    assert from_dict(to_dict(config)) == config


def test_an_unknown_component_is_named_with_its_place_and_the_nearest() -> None:
    message = complaint({**to_dict(BASE), "method": "fedavgg"})
    assert message.startswith("method: no method is called 'fedavgg'; wanted one of ")
    assert message.endswith("Did you mean 'fedavg'.")


def test_a_value_that_the_component_refuses_keeps_the_components_own_words() -> None:
    message = complaint({**to_dict(BASE), "training": {"learning_rate": -1}})
    assert message.startswith("training.learning_rate = -1.0; wanted a number above 0")


@pytest.mark.parametrize("name", ["rounds", "evaluate_every", "threads", "participation"])
def test_a_setting_out_of_range_is_refused(name: str) -> None:
    assert complaint({**to_dict(BASE), name: 0}).startswith(f"{name} = 0")


def test_every_setting_changes_the_hash() -> None:
    others = [
        replace(BASE, rounds=99),
        replace(BASE, data=Toy(rows=10)),
        replace(BASE, baseline=False),
        replace(BASE, preset="quickstart"),
    ]
    assert len({config_hash(config) for config in [BASE, *others]}) == 5

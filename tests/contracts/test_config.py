"""For every component there is: its config can be written down and read back, and a misspelling is found."""

from dataclasses import fields, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from equfl.aggregation.base import Aggregation
from equfl.config.codec import config_hash, from_dict, plain, to_dict
from equfl.config.files import config_text, read_config
from equfl.config.presets import presets, read_preset
from equfl.config.schema import RunConfig
from equfl.core.component import Component, known
from equfl.core.errors import ConfigError, EquflError
from equfl.data.base import Dataset
from equfl.data.toy import Toy
from equfl.fairness.base import Notion
from equfl.methods.base import Method
from equfl.models.base import Model
from equfl.simulation.engines.base import Engine
from equfl.simulation.engines.serial import Serial
from equfl.synthesis.base import Synthesis
from equfl.training.base import Training

SLOTS: dict[str, Any] = {
    "data": Dataset,
    "method": Method,
    "target": Notion,
    "model": Model,
    "training": Training,
    "aggregation": Aggregation,
    "engine": Engine,
}
CLASSES = [(slot, cls) for slot, base in SLOTS.items() for cls in known(base).values()]
EVERY_CLASS = CLASSES + [("method.synthesis", cls) for cls in known(Synthesis).values()]
FIELDS = [(slot, cls, field.name) for slot, cls in CLASSES for field in fields(cls)]
BASE = RunConfig(data=Toy(), engine=Serial())

text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
NUMBERS = {
    bool: st.booleans(),
    int: st.integers(0, 2**53),
    float: st.floats(0, 1e6, allow_nan=False) | st.floats(1e-9, 1e-3),
    str: text,
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that an annotation allows."""
    if kind in NUMBERS:
        return NUMBERS[kind]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:
        return st.lists(values(get_args(kind)[0]), max_size=4).map(tuple)
    if get_origin(kind) is tuple:
        return st.tuples(*map(values, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Component):
        return components(kind)
    assert get_origin(kind) is Union or get_args(kind), f"a config cannot say {kind}"
    return st.one_of(*map(values, get_args(kind)))


@st.composite
def components(draw: Any, base: Any) -> Component:
    """Any component of a kind that its own checks let pass."""
    cls = draw(st.sampled_from(list(known(base).values())))
    hints = get_type_hints(cls)
    chosen: dict[str, Any] = {}
    for field in fields(cls):
        try:
            cls(**(candidate := {**chosen, field.name: draw(values(hints[field.name]))}))
        except (EquflError, TypeError):
            continue
        chosen = candidate
    try:
        return cls(**chosen)
    except TypeError:
        return Toy() if base is Dataset else draw(st.nothing())


@st.composite
def configs(draw: Any) -> RunConfig:
    chosen = {slot: draw(components(base)) for slot, base in SLOTS.items()}
    try:
        RunConfig(**chosen)
    except ConfigError:
        reject()  # two that do not go together, each fine by itself
    return RunConfig(
        **chosen,
        rounds=draw(st.integers(1, 1000)),
        seed=draw(st.integers(0, 2**62)),
        participation=draw(st.floats(0.01, 1)),
        device=draw(st.sampled_from(["cpu", "cuda", "auto"])),
        preset=draw(text),
    )


@given(configs())
@settings(max_examples=60, deadline=None)
def test_a_config_survives_the_plain_form(config: RunConfig) -> None:
    assert from_dict(to_dict(config)) == config
    assert config_hash(from_dict(to_dict(config))) == config_hash(config)


@given(config=configs(), suffix=st.sampled_from([".toml", ".yaml", ".json"]))
@settings(max_examples=60, deadline=None)
def test_a_config_survives_its_file(config: RunConfig, suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("config") / f"config{suffix}"
    path.write_text(config_text(config, suffix), encoding="utf-8")
    assert read_config(path) == config


@pytest.mark.parametrize(("slot", "cls", "field"), FIELDS)
def test_a_misspelt_field_names_its_path_and_the_right_spelling(slot: str, cls: Any, field: str) -> None:
    misspelt = field[:-1] if len(field) > 2 else field + "x"
    with pytest.raises(ConfigError) as caught:
        from_dict({**to_dict(BASE), slot: {"name": cls.name, misspelt: 1}})
    assert caught.value.found == f"{slot}.{misspelt}: unknown key"
    assert field in caught.value.wanted
    assert "Did you mean" in caught.value.remedy


@pytest.mark.parametrize(("slot", "cls", "field"), FIELDS)
def test_a_field_of_the_wrong_type_names_its_path(slot: str, cls: Any, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict({**to_dict(BASE), slot: {"name": cls.name, field: {"a": {}}}})
    assert caught.value.found.startswith(f"{slot}.{field}")


@pytest.mark.parametrize(("slot", "cls"), CLASSES)
def test_a_misspelt_component_names_its_path_and_the_right_spelling(slot: str, cls: Any) -> None:
    with pytest.raises(EquflError) as caught:
        from_dict({**to_dict(BASE), slot: cls.name[:-1]})
    assert caught.value.found.startswith(f"{slot}: ")
    assert cls.name in caught.value.wanted


@pytest.mark.parametrize(("slot", "cls"), EVERY_CLASS)
def test_an_optional_text_is_none_by_default(slot: str, cls: Any) -> None:
    # TOML has no null; "none" would be read back as the word.
    for field in fields(cls):
        members = get_args(get_type_hints(cls)[field.name])
        assert not ({str, type(None)} <= set(members)) or field.default is None


@pytest.mark.parametrize("name", presets())
def test_every_preset_says_what_it_is_and_only_what_differs(name: str) -> None:
    assert len(presets()[name]) > 20
    assert set(read_preset(name)) <= {"data", "model", "preset"}


def test_plain_values_stay_what_they_are() -> None:
    assert plain((1, (2.5, "a"), None, True)) == [1, [2.5, "a"], None, True]


def test_equal_numbers_of_another_type_give_the_same_hash() -> None:
    whole = replace(BASE, training=replace(BASE.training, learning_rate=1.0))
    careless = replace(BASE, training=replace(BASE.training))
    object.__setattr__(careless.training, "learning_rate", 1)  # as a user may write it; the tests check types
    assert config_hash(careless) == config_hash(whole)

"""One setting changed, as by --set."""

from typing import Any

import pytest

from equfl.config.overrides import override
from equfl.core.errors import ConfigError

PLAIN = {"rounds": 100, "method": {"name": "equfl", "gamma": 1.0, "synthesis": {"name": "given", "path": "a"}}}


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("rounds=10", ("rounds",), 10),
        ("method.gamma=0.5", ("method", "gamma"), 0.5),
        ("method.synthesis.path=b", ("method", "synthesis", "path"), "b"),
        ("method.synthesis.path='1'", ("method", "synthesis", "path"), "1"),
        ("method.synthesis.path=a=b", ("method", "synthesis", "path"), "a=b"),
        ("model.hidden=[64, 32]", ("model", "hidden"), [64, 32]),
        ("baseline=false", ("baseline",), False),
        ("method=fedavg", ("method",), "fedavg"),
        ("method.name=fedavg", ("method",), "fedavg"),
    ],
)
def test_a_setting_lands_at_its_path(setting: str, path: tuple[str, ...], value: Any) -> None:
    place: Any = override(PLAIN, setting)
    for key in path:
        place = place[key]
    assert place == value


def test_the_original_stays_as_it_is() -> None:
    override(PLAIN, "method.synthesis.path=b")
    assert PLAIN["method"]["synthesis"]["path"] == "a"  # type: ignore[index]


def test_naming_the_same_component_keeps_its_fields() -> None:
    assert override(PLAIN, "method=equfl") == PLAIN
    assert override(PLAIN, "method.name=equfl") == PLAIN


def test_a_field_of_a_component_given_by_its_bare_name_can_be_set() -> None:
    assert override({"method": "equfl"}, "method.gamma=2") == {"method": {"name": "equfl", "gamma": 2}}


@pytest.mark.parametrize("setting", ["rounds", "=1", ".=1", "method.=1", ""])
def test_a_setting_that_is_none_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="wanted path=value"):
        override(PLAIN, setting)

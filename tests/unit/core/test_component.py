from dataclasses import dataclass

import pytest

from equfl.aggregation.base import Aggregation
from equfl.aggregation.mean import Mean
from equfl.core.component import Component, find, known
from equfl.core.errors import ComponentError
from equfl.training.sgd import SGD


def test_a_component_is_found_by_its_name():
    assert find(Aggregation, "mean") is Mean


def test_an_unknown_name_is_answered_with_the_nearest_one():
    with pytest.raises(ComponentError, match=r"no aggregation is called 'maen'.*Did you mean 'mean'"):
        find(Aggregation, "maen")


def test_the_label_shows_what_differs_from_the_default_and_repr_can_be_pasted_back():
    assert str(SGD()) == "sgd"
    assert str(SGD(batches=1)) == "sgd(batches=1)"
    assert eval(repr(SGD(batches=1))) == SGD(batches=1)


def test_two_components_of_one_name_are_refused():
    class Colour(Component, kind="colour"):
        pass

    @dataclass(frozen=True)
    class Red(Colour, name="red"):
        pass

    with pytest.raises(ComponentError, match="'red' is declared by"):

        @dataclass(frozen=True)
        class Crimson(Colour, name="red"):
            pass


def test_another_package_adds_components_by_an_entry_point(monkeypatch):
    class Entry:
        def load(self):
            @dataclass(frozen=True)
            class Borrowed(Aggregation, name="borrowed_for_this_test"):
                def __call__(self, updates, shares, context):
                    return updates[0]

    monkeypatch.setattr("equfl.core.component.entry_points", lambda group: [Entry()])
    try:
        assert "borrowed_for_this_test" in known(Aggregation)
        assert find(Aggregation, "borrowed_for_this_test").name == "borrowed_for_this_test"
    finally:
        Aggregation._known.pop("borrowed_for_this_test", None)

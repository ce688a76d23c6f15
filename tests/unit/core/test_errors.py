import pickle

from equfl.core.errors import ConfigError, EquflError


def test_a_message_says_what_was_found_what_was_wanted_and_what_to_do():
    error = ConfigError("rounds = -1", wanted="1 or more", remedy="Set 'rounds'")
    assert str(error) == "rounds = -1; wanted 1 or more. Set 'rounds'."
    assert isinstance(error, EquflError)


def test_an_error_survives_the_way_from_another_process():
    error = pickle.loads(pickle.dumps(ConfigError("a", wanted="b", remedy="C")))
    assert (type(error), error.found, error.wanted, error.remedy) == (ConfigError, "a", "b", "C")

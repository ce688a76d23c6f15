"""Refuses a Flower that is not there, or older than the oldest one that the tests are run with."""

from importlib.metadata import PackageNotFoundError, version

from equfl.core.errors import ConfigError

OLDEST = (1, 40)
"""As in pyproject.toml: the message API as it is used here."""


def demand(found: str | None) -> None:
    """Raise unless ``found`` is the version of a Flower that can be used."""
    if found is None or tuple(int(part) for part in found.split(".")[:2]) < OLDEST:
        raise ConfigError(
            "flwr is not installed" if found is None else f"flwr {found}",
            wanted=f"flwr {'.'.join(map(str, OLDEST))} or newer",
            remedy="Install it with: pip install 'equfl[flower]'",
        )


def installed() -> str | None:
    """The version of Flower in this environment."""
    try:
        return version("flwr")
    except PackageNotFoundError:
        return None


demand(installed())

"""Configs as files."""

from dataclasses import replace
from pathlib import Path

import pytest

from equfl.config.files import config_text, read_config, read_plain
from equfl.config.schema import RunConfig
from equfl.core.errors import ConfigError
from equfl.data.toy import Toy
from equfl.methods.fedavg import FedAvg
from equfl.simulation.engines.serial import Serial
from equfl.training.sgd import SGD

BASE = RunConfig(data=Toy(), method=FedAvg(), engine=Serial())


@pytest.mark.parametrize("suffix", [".toml", ".yaml", ".yml", ".json"])
def test_a_config_is_written_and_read_in_every_format(suffix: str, tmp_path: Path) -> None:
    config = replace(BASE, training=SGD(learning_rate=1e-7, batches=3), preset="ünïcode # : '\"")
    path = tmp_path / f"config{suffix}"
    path.write_text(config_text(config, suffix), encoding="utf-8")
    assert read_config(path) == config


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.toml", "rounds = ", r"a\.toml is not valid TOML"),
        ("a.yaml", "rounds: [", r"a\.yaml is not valid YAML"),
        ("a.json", "{", r"a\.json is not valid JSON"),
        ("a.yaml", "- 1", r"a\.yaml holds no keys and values"),
        ("a.yaml", "!!python/object/apply:os.system ['true']", r"a\.yaml is not valid YAML"),
        ("a.ini", "", r"a\.ini has the suffix '\.ini'"),
        ("a.toml", "\udcff", r"a\.toml is not valid TOML"),
    ],
)
def test_a_file_that_is_no_config_is_refused_in_one_line(name: str, text: str, found: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ConfigError, match=found) as caught:
        read_plain(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_plain(tmp_path / "none.toml")

"""Many configs out of one: every method for every target and every seed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from equfl.config.codec import Plain
from equfl.config.request import as_name, notion_named, requested
from equfl.config.schema import RunConfig
from equfl.core.component import find, known
from equfl.core.errors import ConfigError
from equfl.methods.base import Method

BASELINE = "fedavg"
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Refused:
    """A method that has no form for a target, or does not go together with what else was asked for."""

    method: str
    target: str
    reason: str


def variants(
    plain: Plain,
    *,
    methods: str,
    targets: str,
    seeds: str,
    settings: Sequence[str] = (),
    split_by_seed: bool = False,
) -> tuple[dict[str, list[RunConfig]], list[Refused]]:
    """Target -> the configs to compare under it, seed by seed; and what cannot be run.

    FedAvg is always among them, once per seed: it knows no target, so the run for the first one serves all. A setting
    of a method, as ``method.gamma=0.5``, is for those methods that have it.
    """
    names = _methods(methods)
    wanted = [notion_named(word) for word in _words(targets, "--targets")]
    configs: dict[str, list[RunConfig]] = {target: [] for target in wanted}
    refused: list[Refused] = []
    fitting = {name: [one for one in settings if _is_for(one, name)] for name in names}
    for one in settings:
        if not any(one in those for those in fitting.values()):
            raise ConfigError(
                f"the setting {one!r}, which none of the methods has",
                wanted="a setting of at least one method",
                remedy="See 'equfl describe METHOD'",
            )
    for target in wanted:
        for name in names:
            options = [("method", name), ("target", wanted[0] if name == BASELINE else target)]
            try:
                config = requested(plain, options=options, settings=[*fitting[name], "baseline=false"])
                config.method.check(config.target)
            except ConfigError as error:
                if name == BASELINE:
                    raise  # then it is not the method that is refused
                refused.append(Refused(name, target, str(error)))
                continue
            configs[target] += [_seeded(config, seed, split_by_seed) for seed in seeds_named(seeds)]
    return {target: sorted(those, key=lambda config: config.seed) for target, those in configs.items()}, refused


def seeds_named(text: str) -> tuple[int, ...]:
    """``5`` is the seeds 0 to 4; ``2001-2005`` and ``2001,2002`` are those seeds; ``7,`` is the seed 7 alone."""
    parts = [part.strip() for part in text.split(",")]
    if re.fullmatch(r"\d+", text.strip()):
        found = list(range(int(text)))[: MOST_SEEDS + 1]
    else:
        spans = [re.fullmatch(r"(\d+)(?:-(\d+))?", part) for part in parts if part]
        found = [
            seed
            for span in spans
            if span is not None
            for seed in range(int(span[1]), min(int(span[2] or span[1]), int(span[1]) + MOST_SEEDS) + 1)
        ]
        if None in spans:
            found = []
    if not 0 < len(found) <= MOST_SEEDS:
        raise ConfigError(
            f"--seeds {text}",
            wanted=f"how many, or which: 5, 2001-2005 or 3,7,9; at most {MOST_SEEDS}",
            remedy="'--seeds 5' is the seeds 0 to 4",
        )
    return tuple(dict.fromkeys(found))


def _methods(text: str) -> list[str]:
    everything = list(known(Method))
    chosen = everything if text == "all" else [as_name(word) for word in _words(text, "--methods")]
    for name in chosen:
        find(Method, name)
    return list(dict.fromkeys([BASELINE, *chosen]))


def _words(text: str, option: str) -> list[str]:
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if not words:
        raise ConfigError(f"{option} without a name", wanted="names with commas between", remedy="See 'equfl describe'")
    return list(dict.fromkeys(words))


def _is_for(setting: str, method: str) -> bool:
    first, _, rest = setting.partition("=")[0].partition(".")
    own = {field.name for field in fields(find(Method, method))}  # type: ignore[arg-type]
    return first != "method" or rest.partition(".")[0] in own


def _seeded(config: RunConfig, seed: int, split: bool) -> RunConfig:
    if split:
        if "seed" not in {field.name for field in fields(config.data)}:  # type: ignore[arg-type]
            raise ConfigError(
                f"--split-by-seed with {config.data.name}, whose rows are always divided in the same way",
                wanted="data with a seed of its own",
                remedy="Leave the option out",
            )
        config = replace(config, data=replace(config.data, seed=seed))  # type: ignore[type-var]
    return replace(config, seed=seed)

"""One run from its config to its result, beside FedAvg, and from wherever it stopped."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import torch

from equfl.config.schema import RunConfig
from equfl.core.component import find
from equfl.core.errors import ConfigError
from equfl.core.protocol import ServerState
from equfl.data.base import Federation
from equfl.data.soundness import demand_sound
from equfl.methods.base import Method
from equfl.runs.folder import RunFolder
from equfl.runs.laboratory import Laboratory, Records
from equfl.runs.result import Run
from equfl.runs.store import Store
from equfl.runs.watcher import Watcher


def execute(
    config: RunConfig, *, federation: Federation | None = None, out: Path | None = None, watcher: Watcher | None = None
) -> Run:
    """Compute the run and, if the config wants it, FedAvg beside it; in a folder it can be stopped at any moment.

    The federation is the config's, loaded if it is not given.
    """
    watcher = watcher or Watcher()
    config.method.check(config.target)
    with _threads(config.threads), _opened(out, config) as store:
        device, began = _device(config), perf_counter()
        federation = federation or config.data.load(progress=watcher.working)
        demand_sound(federation)
        loading = perf_counter() - began
        store.rows_are(federation)
        watcher.loaded(federation)
        laboratory = Laboratory.equipped(federation, config.target, device, watcher, loading=loading)
        if not config.baseline:
            run = laboratory.run(config, store)
        elif config.method.shared_rounds(config.rounds) >= config.rounds:
            run = laboratory.run(config, store)
            run = replace(run, baseline=run)
        else:
            run = _beside_fedavg(config, laboratory, store)
        store.finish(run)
    return run


def _beside_fedavg(config: RunConfig, laboratory: Laboratory, store: Store) -> Run:
    """The run and its baseline. The two have one seed, so the rounds in which both are FedAvg are computed once."""
    fedavg = replace(config, method=find(Method, "fedavg")(), baseline=False)
    shared = config.method.shared_rounds(config.rounds)
    with store.beside(fedavg) as place:
        place.rows_are(laboratory.federation)

        def hand_over(records: Records, state: ServerState) -> None:
            if state.round == shared:
                place.begin_at([replace(record, diagnostics={}) for record in records], replace(state, memory={}))

        run = laboratory.run(config, store, hand_over)
        baseline = laboratory.run(fedavg, place)
        place.finish(baseline)
    return laboratory.compared(run, baseline)


def _opened(out: Path | None, config: RunConfig) -> AbstractContextManager[Store]:
    return nullcontext(Store()) if out is None else RunFolder.opened(out, config)


def _device(config: RunConfig) -> torch.device:
    there = torch.cuda.is_available()
    if config.device == "cuda" and not there:
        raise ConfigError(
            "device = 'cuda' without a graphics card that torch can use",
            wanted="a card with CUDA, and a build of torch for it",
            remedy="Choose device = 'cpu', or 'auto' to take the card only where there is one",
        )
    return torch.device("cuda" if there and config.device != "cpu" else "cpu")


@contextmanager
def _threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)

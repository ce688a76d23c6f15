"""Many jobs on the cores of one machine, in processes of their own: one that dies takes nobody along."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from traceback import extract_tb
from typing import Any

from equfl.core.errors import EquflError

Tell = Callable[[Any], None]
"""What a job calls to say how far it is; anything that can be sent between processes."""
Work = Callable[[Any, Tell], None]
"""A function of a module, so that another process finds it: does one job."""

PATIENCE = 5.0
"""Seconds that a process gets to end by itself."""


@dataclass(frozen=True)
class Told:
    """A job says something."""

    job: int
    """Its place in the sequence of jobs."""
    what: Any


@dataclass(frozen=True)
class Done:
    """A job has ended well."""

    job: int


@dataclass(frozen=True)
class Broken:
    """A job has ended otherwise."""

    job: int
    reason: str
    """One line."""


@dataclass
class _Worker:
    process: BaseProcess
    job: int


def at_once(work: Work, jobs: Sequence[Any], processes: int) -> Iterator[Told | Done | Broken]:
    """Do the jobs, so many at a time, and tell what happens, as it happens.

    However the iteration ends, no process is left; and if this process is killed, the others end by themselves.
    """
    waiting = deque(enumerate(jobs))
    workers: dict[Connection, _Worker] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < processes:
                line, worker = _hired(work)
                workers[line] = worker
                _hand_next(line, worker, waiting)
            ready = wait(list(workers))
            for line in [line for line in workers if line in ready]:
                worker = workers[line]
                event = _heard(line, worker)
                over = not isinstance(event, Told)
                if over and (not worker.process.is_alive() or not _hand_next(line, worker, waiting)):
                    del workers[line]
                    _dismiss(line, worker)
                yield event
    finally:
        for line, worker in workers.items():
            worker.process.terminate()
            _dismiss(line, worker)


def _hired(work: Work) -> tuple[Connection, _Worker]:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work), daemon=True)
    with _undisturbed():
        process.start()
    there.close()
    return here, _Worker(process, -1)


def _hand_next(line: Connection, worker: _Worker, waiting: deque[tuple[int, Any]]) -> bool:
    """Give a worker the next job, if there is one."""
    if not waiting:
        return False
    worker.job, job = waiting[0]
    try:
        line.send((worker.job, job))
    except OSError:
        return False  # it died between two jobs; the job is for another one
    waiting.popleft()
    return True


def _heard(line: Connection, worker: _Worker) -> Told | Done | Broken:
    try:
        event = line.recv()
        assert isinstance(event, Told | Done | Broken)
        return event
    except (EOFError, OSError):
        worker.process.join(PATIENCE)
        code = worker.process.exitcode or 0
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return Broken(worker.job, f"its process ended {how}; is there enough memory?")


def _dismiss(line: Connection, worker: _Worker) -> None:
    line.close()  # the worker reads the end of its jobs
    worker.process.join(PATIENCE)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Processes that begin in the block do not hear Ctrl-C: who began them decides what becomes of them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(line: Connection, work: Work) -> None:
    """The life of a worker."""
    Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            number, job = line.recv()
        except EOFError:
            return
        try:
            work(job, lambda what, number=number: line.send(Told(number, what)))  # type: ignore[misc]
        except EquflError as error:
            line.send(Broken(number, str(error)))
        except Exception as error:
            line.send(Broken(number, _in_one_line(error)))
        else:
            line.send(Done(number))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _in_one_line(error: Exception) -> str:
    """What nobody has foreseen: the error and the place, for whoever is to mend it."""
    place = extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said} ({Path(place.filename).name}:{place.lineno})"

"""How a run is interrupted and ends: signals, a second thread, errors, and environments that do not return."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..errors import HindsightError, InUseError

if TYPE_CHECKING:  # they import torch
    from .run_folder import RunFolder
    from .trainer import Trainer

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)  # Ctrl-C, kill, closed terminal, SLURM
Handler = Callable[[int, FrameType | None], Any] | int


@contextlib.contextmanager
def held_back(numbers: Collection[signal.Signals], second: Handler = signal.SIG_DFL) -> Iterator[list[signal.Signals]]:
    """Collect these signals instead of acting on them, and yield the list of those that came.

    second: the handler of a second signal of a kind. SIG_DFL ends the process at once.
    Signals that are ignored stay ignored: nohup ignores SIGHUP. Only the main thread receives signals.
    """
    received: list[signal.Signals] = []

    def remember(number: int, frame: object) -> None:
        received.append(signal.Signals(number))
        signal.signal(number, second)

    is_main = threading.current_thread() is threading.main_thread()
    heeded = [number for number in numbers if is_main and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, remember) for number in heeded}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[list[signal.Signals]]:
    """Hold back Ctrl-C: it raises KeyboardInterrupt after the block. A second one raises it at once.

    If the program has its own handler, that one is left in place.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with held_back([signal.SIGINT] if is_default else [], second=signal.default_int_handler) as received:
        yield received
    if received:
        raise KeyboardInterrupt


class OneThread:
    """Lets one thread at a time call some methods of an object. A second thread gets an error at once.

    The thread that is inside may call them again, as a callback does.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._method = ""  # that the thread inside called first

    @contextlib.contextmanager
    def calls(self, method: str) -> Iterator[None]:
        """Run the block as a call of `method`. Raises InUseError if another thread is inside one."""
        if not self._lock.acquire(blocking=False):
            raise InUseError(
                f"`{method}` was called while another thread is in `{self._method}` of the same model. Wait until it "
                f"returns, call `{method}` in a callback, or use one model per thread."
            )
        before, self._method = self._method, self._method or method
        try:
            yield
        finally:
            self._method = before
            self._lock.release()


def print_error(text: str) -> None:
    """Print a sentence to stderr."""
    print(f"hindsight-rl: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def finished(folder: RunFolder, trainer: Trainer, report: Callable[[str], None] = print_error) -> Iterator[None]:
    """Write the last files of a run when the block ends. An error gets a note that says how the run goes on.

    If an environment neither returns nor can be interrupted, the block never ends. The files are written nevertheless.
    report: is called after that, in another thread, with what happened and how the run goes on.
    """
    limit = trainer.source.time_limit
    limit.on_stuck = lambda what: report(f"{what}: the environment does not return. {_finish(folder, trainer)}")
    try:
        yield
    except BaseException as problem:
        problem.add_note(_finish(folder, trainer))
        raise
    finally:
        limit.on_stuck = None
    folder.finish(trainer)


def _finish(folder: RunFolder, trainer: Trainer) -> str:
    """Write the last files, and return how the run goes on. If the disk fails, the text says so."""
    try:
        folder.finish(trainer)
    except (HindsightError, OSError) as problem:
        return str(problem)
    return folder.checkpoints.how_to_go_on()

"""Signals that ask a run to stop are held back until the end of a job, where its state is complete."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any

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

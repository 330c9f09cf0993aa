"""A time limit for what this process runs: environments that never return from a step."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

DEFAULT_SECONDS = 600.0
SIGNAL = signal.SIGURG  # ignored where nobody handles it, so that a late one does no harm
PERIOD = 0.25  # seconds between two looks at the clock
STUCK_SECONDS = 10.0  # after the signal: code that has not returned to Python by then is stuck


class OutOfTimeError(BaseException):
    """The block took too long. An `except Exception` of an environment does not catch it."""


class TimeLimit:
    """Interrupts a block that makes no progress for `seconds`.

    A thread watches the clock and sends a signal to the main thread. Python runs its handler between two instructions, and
    within calls that wait, such as `time.sleep`. The handler raises OutOfTimeError. Code of another language that does not
    return to Python cannot be interrupted. If it releases Python's lock, `on_stuck` is called in the watching thread.
    Blocks in other threads than the main one have no limit, since only the main thread runs handlers.

    seconds: without progress, see `renew`.
    on_stuck: called once for a block that is stuck, with what it does. The main thread cannot go on before it returns.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.on_stuck: Callable[[str], None] | None = None
        self._what: object = ""
        self._is_reported = False
        self._deadline: float | None = None  # None: there is nothing to watch
        self._thread: threading.Thread | None = None
        self._changing = threading.Lock()  # of `_thread`
        self._telling = threading.Lock()

    @contextmanager
    def watch(self, what: object) -> Iterator[None]:
        """Run the block with the limit. what: it does; `on_stuck` gets it as text. Raises OutOfTimeError."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(SIGNAL, self._interrupt)
        try:
            self._what, self._is_reported = what, False
            self._start()
            try:
                yield
            finally:
                self._deadline = None
        finally:
            signal.signal(SIGNAL, before)

    def renew(self) -> None:
        """Start the time again: the block makes progress."""
        if self._deadline is not None:
            self._deadline = time.monotonic() + self.seconds

    def _start(self) -> None:
        with self._changing:
            self._deadline = time.monotonic() + self.seconds
            if self._thread is None or not self._thread.is_alive():  # it has ended, or this is a forked child
                self._thread = threading.Thread(target=self._watch_clock, name="hindsight-time-limit", daemon=True)
                self._thread.start()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise OutOfTimeError if the time is over. The handler of the signal."""
        with self._telling:  # what `on_stuck` does must not meet a main thread that goes on
            is_over = self._deadline is not None and time.monotonic() > self._deadline
        if is_over:
            self._deadline = None
            raise OutOfTimeError

    def _watch_clock(self) -> None:
        while True:
            time.sleep(PERIOD)
            with self._changing:
                if self._deadline is None:  # there is nothing to watch
                    self._thread = None
                    return
            with self._telling:
                self._look()

    def _look(self) -> None:
        """Send the signal if the time is over, and report a block that does not end after it."""
        deadline = self._deadline
        late = 0.0 if deadline is None else time.monotonic() - deadline
        if late > 0:
            signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)
        if late > STUCK_SECONDS and self.on_stuck and not self._is_reported:
            self._is_reported = True
            self.on_stuck(str(self._what))

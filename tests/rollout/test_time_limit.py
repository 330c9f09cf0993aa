import ctypes
import signal
import threading
import time

import pytest

from hindsight_rl.rollout import time_limit
from hindsight_rl.rollout.time_limit import SIGNAL, OutOfTimeError, TimeLimit


def loop_forever():
    while True:
        try:
            sum(range(100))
        except Exception:
            continue


@pytest.mark.parametrize("block", [loop_forever, lambda: time.sleep(3600), threading.Event().wait])
def test_what_never_returns_is_interrupted_and_the_handler_restored(block):
    before = signal.getsignal(SIGNAL)
    limit = TimeLimit(0.1)
    for _ in range(2):
        with pytest.raises(OutOfTimeError), limit.watch("a block"):
            block()
        assert signal.getsignal(SIGNAL) is before


def test_a_block_in_time_is_left_alone_and_a_late_signal_does_no_harm():
    limit = TimeLimit(3600)
    with limit.watch("a block"):
        signal.raise_signal(SIGNAL)
    signal.raise_signal(SIGNAL)


def test_progress_starts_the_time_again():
    limit = TimeLimit(3600)
    limit.renew()
    assert limit._deadline is None  # nothing is watched
    with limit.watch("a block"):
        first = limit._deadline
        limit.renew()
        assert limit._deadline > first


def test_the_thread_ends_without_anything_to_watch(monkeypatch):
    monkeypatch.setattr(time_limit, "PERIOD", 0.01)
    limit = TimeLimit(3600)
    for _ in range(2):
        with limit.watch("a block"):
            thread = limit._thread
        thread.join()
        assert limit._thread is None


def test_in_another_thread_there_is_no_limit():
    limit, ended = TimeLimit(0.0), []

    def watched():
        with limit.watch("a block"):
            ended.append(limit._thread)

    thread = threading.Thread(target=watched)
    thread.start()
    thread.join()
    assert ended == [None]


def test_code_that_does_not_return_to_python_is_reported_in_another_thread(monkeypatch):
    """A mutex of C is locked twice, which waits forever without Python's lock. The report unlocks it."""
    monkeypatch.setattr(time_limit, "STUCK_SECONDS", 0.1)
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    seen = []

    def report(what):
        seen.append((what, threading.current_thread() is not threading.main_thread()))
        libc.pthread_mutex_unlock(mutex)
        time.sleep(0.1)  # the main thread waits until the report has ended
        seen.append("ended")

    limit = TimeLimit(0.1)
    limit.on_stuck = report
    libc.pthread_mutex_lock(mutex)
    with pytest.raises(OutOfTimeError), limit.watch("a step"):
        libc.pthread_mutex_lock(mutex)
    assert seen == [("a step", True), "ended"]

import os
import signal

import pytest

from hindsight_rl.training.stop_signals import STOPPING, held_back, interrupts_held_back


@pytest.mark.usefixtures("default_signal_handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_collected_and_handlers_restored(number):
    before = signal.getsignal(number)
    with held_back(STOPPING) as received:
        os.kill(os.getpid(), number)
        assert received == [number]
        assert signal.getsignal(number) is signal.SIG_DFL  # the second one ends the process
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_back(STOPPING) as received:
            os.kill(os.getpid(), signal.SIGHUP)
        assert received == []
    finally:
        signal.signal(signal.SIGHUP, before)


def interrupt(times, seen):
    """Press Ctrl-C so many times, and note after each that the program goes on."""
    with interrupts_held_back():
        for number in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            seen.append(number)


@pytest.mark.usefixtures("default_signal_handlers")
def test_ctrl_c_is_raised_after_the_block_and_the_second_one_at_once():
    for times in (1, 2):
        seen = []
        with pytest.raises(KeyboardInterrupt):
            interrupt(times, seen)
        assert seen == [0]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("default_signal_handlers")
def test_an_own_handler_of_ctrl_c_stays():
    seen = []
    signal.signal(signal.SIGINT, lambda *signal: seen.append("own"))
    with interrupts_held_back() as received:
        os.kill(os.getpid(), signal.SIGINT)
    assert (seen, received) == (["own"], [])

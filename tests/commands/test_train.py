import os
import signal

import pytest

from hindsight.commands.train import folder_name, stop_signals


def test_an_environment_as_the_name_of_a_folder():
    assert folder_name("FetchReach-v4") == "FetchReach-v4"
    assert folder_name("dock:Dock-v0", ["n_bits=3", 'reward="a/b"']) == "dock_Dock-v0_n_bits=3_reward=_a_b_"
    assert len(folder_name("x" * 500)) == 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_collected_and_handlers_restored(number):
    before = signal.getsignal(number)
    with stop_signals() as received:
        os.kill(os.getpid(), number)
        assert received == [number]
        assert signal.getsignal(number) is signal.SIG_DFL  # the second one ends the process
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals() as received:
            os.kill(os.getpid(), signal.SIGHUP)
        assert received == []
    finally:
        signal.signal(signal.SIGHUP, before)

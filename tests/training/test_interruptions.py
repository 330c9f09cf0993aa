import os
import signal
import threading

import pytest
from short_runs import her

from hindsight_rl.errors import InUseError
from hindsight_rl.training.interruptions import STOPPING, held_back, interrupts_held_back


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


def in_another_thread(act):
    """Return the error that `act` raises in another thread, or None."""
    raised = []

    def run():
        try:
            act()
            raised.append(None)
        except BaseException as problem:
            raised.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0]


def test_a_second_thread_that_learns_evaluates_or_saves_gets_an_error_at_once(tmp_path):
    errors = []

    def use_elsewhere(view):
        errors.append(in_another_thread(lambda: model.learn(10)))
        errors.append(in_another_thread(lambda: model.evaluate(1)))
        errors.append(in_another_thread(lambda: model.save(tmp_path / "model.safetensors")))
        view.evaluate(1)  # the thread that learns may do so
        model.save(tmp_path / "model.safetensors")

    with her() as model:
        model.learn(10, callback=use_elsewhere)
        assert [type(error) for error in errors] == [InUseError] * 3
        assert [str(error).split(" was called while another thread is in ")[0] for error in errors] == [
            "`learn`",
            "`evaluate`",
            "`save`",
        ]
        assert in_another_thread(lambda: model.learn(10)) is None
        assert model.num_timesteps == 10


def test_after_an_error_another_thread_may_go_on():
    def stop(view):
        raise RuntimeError("stop")

    with her() as model:
        with pytest.raises(RuntimeError):
            model.learn(10, callback=stop)
        assert in_another_thread(lambda: model.learn(10)) is None

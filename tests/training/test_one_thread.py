import threading

import pytest
from short_runs import her

from hindsight_rl.errors import InUseError


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

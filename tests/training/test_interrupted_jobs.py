"""An error within a job leaves a checkpoint, and the run goes on from it to the bytes that it has without the error."""

import json
import os
import signal

import numpy as np
import pytest
from short_runs import SMALL, her, same_bytes, short

from hindsight_rl import HER, PointReach, storage
from hindsight_rl.errors import GoalEnvError, HindsightError
from hindsight_rl.replay.timeline import Timeline
from hindsight_rl.training import structure_search
from hindsight_rl.training.checkpoint import trainer_state
from hindsight_rl.training.interruptions import finished
from hindsight_rl.training.run_folder import RunFolder
from hindsight_rl.training.saved_model import SavedModel
from hindsight_rl.training.trainer import Trainer
from hindsight_rl.training.updates import UpdateLoop

STEPS = 80
OPTIONS = {"eval_every": 40, "eval_episodes": 2, "log_every": 20, "checkpoint_every": 10**6, "steps": STEPS}


class Countdown(PointReach):
    """Calls `happens` in the call of compute_reward for a batch at which `calls_left` reaches 0."""

    calls_left, happens = 0, None  # shared by all environments

    def __init__(self):
        super().__init__(max_steps=10)

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        if np.ndim(achieved_goal) == 2:
            Countdown.calls_left -= 1
            if Countdown.calls_left == 0:
                Countdown.happens()
        return super().compute_reward(achieved_goal, desired_goal, info)


def fail():
    raise KeyError("not in the table")


def counting_down(calls, happens=fail, **options):
    """Return a model, after whose making `happens` is called in so many calls."""
    model = her(Countdown, **options)
    assert model.trainer.counts.env_steps == 0
    Countdown.calls_left, Countdown.happens = calls, happens
    return model


@pytest.fixture(autouse=True)
def nothing_happens():
    yield
    Countdown.calls_left, Countdown.happens = 0, fail


def train(model, path, resumes=False):
    """Train to the end in a folder."""
    with RunFolder(path, model.settings, model.spec) as folder:
        folder.resume(model.trainer) if resumes else folder.begin()
        with finished(folder, model.trainer):
            for event in model.trainer.run(STEPS):
                folder.listen(model.trainer, event)


def content(path, model):
    """Return all that a run has written and holds, without times."""
    arrays, data = trainer_state(model.trainer)
    files = [storage.read_lines(path / f"{name}.jsonl") for name in ("metrics", "episodes", "evaluations", "changes")]
    lines = [[{k: v for k, v in line.items() if "seconds" not in k} for _, line in lines] for lines in files]
    counts = {name: count for name, count in data["counts"].items() if "seconds" not in name}
    return {name: array.tobytes() for name, array in arrays.items()}, data | {"counts": counts}, lines


@pytest.mark.parametrize("options", [{}, pytest.param({"prioritized": True, "policy_lag": 1}, marks=pytest.mark.slow)])
def test_a_reward_function_that_raises_at_any_call_leaves_a_checkpoint(tmp_path, options):
    with counting_down(10**6, **OPTIONS | options) as whole:
        train(whole, tmp_path / "whole")
        calls, expected = 10**6 - Countdown.calls_left, content(tmp_path / "whole", whole)
    resumed = 0
    for number in range(1, calls + 1, 4):
        path = tmp_path / str(number)
        with counting_down(number, **OPTIONS | options) as model:
            try:
                train(model, path)
                continue  # calls with goals that the program made up may fail
            except GoalEnvError:
                pass
        assert json.loads((path / "ended.json").read_text())["why"] == "stopped"
        assert SavedModel.read(path)
        with her(Countdown, **OPTIONS | options) as again:
            train(again, path, resumes=True)
            assert content(path, again) == expected, number
        resumed += 1
    assert resumed > 2


def test_an_error_between_two_updates_leaves_a_checkpoint(tmp_path, monkeypatch):
    with her(**OPTIONS) as whole:
        train(whole, tmp_path / "whole")
        expected = content(tmp_path / "whole", whole)
    learn, draws = UpdateLoop._learn, iter(range(10))
    monkeypatch.setattr(UpdateLoop, "_learn", lambda *arguments: (learn(*arguments), next(draws)))
    with her(**OPTIONS) as model, pytest.raises((StopIteration, RuntimeError)):
        train(model, tmp_path / "run")
    monkeypatch.undo()
    with her(**OPTIONS) as again:
        train(again, tmp_path / "run", resumes=True)
        assert content(tmp_path / "run", again) == expected


INFERRED = SMALL | {"structure": "inferred", "max_episode_steps": 10, "random_steps": 50, "steps": 120, "eval_every": 0}


def learn_inferred(path, resumes=False):
    """Train a run that looks for the structure of its task, and return what it has written and holds."""
    with HER("PointReach-v0", recipe="default", **INFERRED) as model:
        with RunFolder(path, model.settings, model.spec) as folder:
            folder.resume(model.trainer) if resumes else folder.begin()
            with finished(folder, model.trainer):
                for event in model.trainer.run(120):
                    folder.listen(model.trainer, event)
        return content(path, model), json.loads((path / "settings.json").read_text())["options"]


@pytest.fixture(scope="module")
def inferred(tmp_path_factory):
    return learn_inferred(tmp_path_factory.mktemp("inferred"))


@pytest.mark.parametrize(
    ("part", "name"),
    [(structure_search, "infer_structure"), (Timeline, "_write"), (Trainer, "rebuild"), (UpdateLoop, "_draw")],
)
def test_an_error_after_the_first_look_for_structure_leaves_a_checkpoint(tmp_path, monkeypatch, inferred, part, name):
    made, looks = getattr(part, name), []

    def fail_once(*arguments, **options):
        if looks == ["now"]:
            looks.append("failed")
            raise MemoryError("too large")
        return made(*arguments, **options)

    after_job = structure_search.StructureSearch.after_job

    def look(search, run):
        if run.counts.env_steps >= 50 and not looks:
            looks.append("now")
        after_job(search, run)

    with monkeypatch.context() as patch:
        patch.setattr(part, name, fail_once)
        patch.setattr(structure_search.StructureSearch, "after_job", look)
        with pytest.raises(MemoryError):
            learn_inferred(tmp_path)
    assert json.loads((tmp_path / "ended.json").read_text())["why"] == "stopped"
    assert learn_inferred(tmp_path, resumes=True) == inferred


class Blind(PointReach):
    """Reports NaN while `is_blind`."""

    is_blind = True

    def __init__(self):
        super().__init__(max_steps=10)

    def step(self, action):
        observation, *rest = super().step(action)
        return observation | {"observation": observation["observation"] * (float("nan") if Blind.is_blind else 1)}, *rest


def test_ten_bad_episodes_in_a_row_leave_a_checkpoint_from_which_the_run_goes_on(tmp_path, monkeypatch):
    with her(Blind, **OPTIONS | {"steps": 200}) as model:
        with pytest.raises(HindsightError, match="refused 10 episodes in a row") as caught:
            model.learn(200, folder=tmp_path / "run")
        assert "--resume goes on from it" in caught.value.__notes__[-1]
        state = trainer_state(model.trainer)[0]
    monkeypatch.setattr(Blind, "is_blind", False)
    with her(Blind, **OPTIONS | {"steps": 200}) as again, RunFolder(tmp_path / "run", again.settings, again.spec) as folder:
        folder.resume(again.trainer)
        assert same_bytes(trainer_state(again.trainer)[0], state)
        again.learn(50)
        counts = again.trainer.counts
        assert (counts.env_steps, counts.refused_episodes, counts.refused_in_a_row) == (150, 10, 0)


def test_an_error_within_learn_leaves_a_checkpoint_and_the_model_can_go_on(tmp_path):
    with counting_down(12) as model, her(short) as whole:
        with pytest.raises(GoalEnvError, match="not in the table") as caught:
            model.learn(STEPS, folder=tmp_path / "run")
        steps = model.trainer.counts.env_steps
        assert f"checkpoint.safetensors, after {steps} steps" in caught.value.__notes__[-1]
        saved = trainer_state(model.trainer)[0]
        expected = whole.learn(STEPS).agent.state_dict()
        assert same_bytes(model.learn(STEPS - steps).agent.state_dict(), expected)
        model.close()
        with her(Countdown) as again, RunFolder(tmp_path / "run", again.settings, again.spec) as folder:
            folder.resume(again.trainer)
            assert same_bytes(trainer_state(again.trainer)[0], saved)
            assert same_bytes(again.learn(STEPS - steps).agent.state_dict(), expected)


@pytest.mark.usefixtures("default_signal_handlers")
def test_ctrl_c_within_an_update_leaves_a_checkpoint_and_a_policy(tmp_path):
    with counting_down(12, lambda: os.kill(os.getpid(), signal.SIGINT)) as model, her(short) as whole:
        with pytest.raises(KeyboardInterrupt):
            model.learn(STEPS, folder=tmp_path / "run")
        assert model.trainer.counts.updates
        assert SavedModel.read(tmp_path / "run").weights.flat.tobytes() == model.weights.flat.tobytes()
        model.close()
        with her(Countdown) as again, RunFolder(tmp_path / "run", again.settings, again.spec) as folder:
            folder.resume(again.trainer)
            steps = again.trainer.counts.env_steps
            expected = whole.learn(STEPS).agent.state_dict()
            assert same_bytes(again.learn(STEPS - steps).agent.state_dict(), expected)

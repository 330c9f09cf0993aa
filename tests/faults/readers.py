"""Every reader of a file, on a valid file of a short run."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gymnasium import spaces
from whole_run import ENVIRONMENT, KINDS, OPTIONS, train

from hindsight_rl import HER, HindsightBuffer, ReplayOptions
from hindsight_rl.agents.policy import Policy
from hindsight_rl.compat.cpprb import HindsightReplayBuffer
from hindsight_rl.envs.goal_env import make_goal_env, read_spec
from hindsight_rl.envs.minari_data import read_episodes, write_episodes
from hindsight_rl.recipes import load_recipe
from hindsight_rl.recipes.files import load_suite
from hindsight_rl.records import Episode
from hindsight_rl.report.comparison import comparison_text
from hindsight_rl.report.page import run_page
from hindsight_rl.report.run import read_run
from hindsight_rl.training.checkpoint import CHECKPOINT, PREVIOUS, trainer_state
from hindsight_rl.training.resolve import resolve_settings
from hindsight_rl.training.run_files import METRICS
from hindsight_rl.training.run_folder import SETTINGS, RunFolder, read_ending
from hindsight_rl.training.saved_model import SavedModel

RECIPE = """environments = ["PointReach-*"]
agent = "td3"
automatic = true
[options]
relabel = "future=0.8,desired=0.1"
symmetries = ["o0=-o0 g0=-g0 a0=-a0"]
hidden = [64, 64]
tau = 0.05
[sac]
entropy_coefficient = 0.1
"""
SUITE = """[[entry]]
environment = "PointReach-v0"
tau = 0.05
[[entry]]
environment = "BitFlipping-v0"
env_options = ["n_bits=5"]
"""


class Reader(NamedTuple):
    """A valid file, and a function that reads it, uses the result, and returns what can be compared.

    kind: of a safetensors file, "" for others. has_checksum: a damaged file is refused, or the load is equal.
    """

    name: str
    path: Path
    read: Callable[[], object]
    kind: str = ""
    has_checksum: bool = False


def make_readers(folder):
    """Return the readers. The files are written into `folder`."""
    train(folder / "run")
    for name in ("report.html", "plotly.min.js", "checkpoint-previous.safetensors"):
        (folder / "run" / name).unlink()
    report = folder / "report"
    shutil.copytree(folder / "run", report, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "suite.toml").write_text(SUITE)
    readers = [
        Reader("policy", folder / "run/policies/best.safetensors", lambda: _use_policy(folder / "run"), "policy"),
        Reader("recipe", folder / "recipe.toml", lambda: _use_recipe(folder / "recipe.toml")),
        Reader("suite", folder / "suite.toml", lambda: load_suite(str(folder / "suite.toml"))),
    ]
    names = ("settings.json", "ended.json", "metrics.jsonl", "evaluations.jsonl", "episodes.jsonl")
    readers += [Reader(f"report of {name}", report / name, lambda: _use_run(report)) for name in names]
    return [*readers, *_run_readers(folder / "resumed"), *_buffer_readers(folder), *_data_set_readers(folder / "data_sets")]


def _use_policy(path):
    saved = SavedModel.read(path)
    policy = Policy(saved.policy)
    policy.load(saved.weights)
    shapes = (part.shape for part in (saved.spec.observation, saved.spec.goal, saved.spec.goal))
    action = policy.act(*(np.ones(shape) for shape in shapes))
    return saved.settings, action.tobytes(), saved.weights.flat.tobytes()


def _use_recipe(path):
    return resolve_settings(load_recipe(str(path)), read_spec(make_goal_env(ENVIRONMENT)), None, {})


def _use_run(folder):
    run = read_run(folder)
    run_page(run)
    return comparison_text([run]), read_ending(folder)


def _run_readers(path):
    """Return the readers of a resumed run. Its checkpoint holds an evaluation under way and jobs."""
    model = HER(ENVIRONMENT, **OPTIONS)
    with RunFolder(path, model.settings, model.spec) as folder:
        folder.begin()
        for event in model.trainer.run(OPTIONS["steps"]):
            folder.listen(model.trainer, event)
            if model.trainer.evaluator.pending:
                break
        folder.save_checkpoint(model.trainer)
    (path / PREVIOUS).unlink()

    def resume():
        with RunFolder(path, model.settings, model.spec) as folder:
            folder.resume(model.trainer)
            arrays, data = trainer_state(model.trainer)
            result = {name: array.tobytes() for name, array in arrays.items()}, str(data)
            folder.save_checkpoint(model.trainer)
            for event in itertools.islice(model.trainer.run(OPTIONS["steps"]), 4):
                folder.listen(model.trainer, event)
            return result

    names = (SETTINGS, METRICS, CHECKPOINT)
    return [Reader(f"resume with {name}", path / name, resume, KINDS.get(name.partition(".")[0], "")) for name in names]


def _reward(achieved, goal, info):
    return -(np.abs(achieved - goal).max(-1) > 0.1).astype(np.float32)


def _buffer_readers(folder):
    box = spaces.Box(-1, 1, (2,), np.float32)
    space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), box))
    for options in (ReplayOptions(prioritized=True), ReplayOptions(relabel_at="episode_end", energy_priority=True)):
        buffer = HindsightBuffer(40, space, box, _reward, n_envs=2, autoreset="disabled", options=options)
        path = folder / f"{options.relabel_at}.safetensors"
        for step in range(33):
            _add(buffer, step)
        buffer.save(path)
        yield Reader(f"buffer {options.relabel_at}", path, lambda path=path: _use_buffer(path), "hindsight-rl buffer")
    yield _cpprb_reader(folder / "cpprb.safetensors")


def _add(buffer, step):
    rows = np.full((2, 2), step / 40, np.float32)
    before, after = (dict.fromkeys(("observation", "achieved_goal", "desired_goal"), rows + i / 40) for i in (0, 1))
    buffer.add(before, rows, np.zeros(2), after, np.zeros(2, bool), np.full(2, step % 5 == 4))


def _use_buffer(path):
    buffer = HindsightBuffer.load(path, _reward)
    batch = buffer.sample(16)
    result = batch.goal.tobytes(), batch.row.tobytes(), buffer.state_dict()[0]["rows"].tobytes()
    buffer.end_open_episodes()
    if buffer.open_episodes.n_envs == 2 and buffer.timeline.spec.observation.shape == (2,):
        for step in range(12):
            _add(buffer, step)
    buffer.sample(16)
    return result


def _cpprb_reader(path):
    fields = {"obs": {"shape": 2}, "act": {}, "next_obs": {"shape": 2}}
    buffer = HindsightReplayBuffer(60, fields, 5, lambda state, action, goal: -np.abs(state - goal).max(-1))
    for step in range(12):
        buffer.add(obs=(step, 0), act=step, next_obs=(step + 1, 0))
        if step % 5 == 4:
            buffer.on_episode_end((9, 9))
    buffer.save_transitions(path)

    def read():
        buffer.load_transitions(path)
        batch = buffer.sample(16)
        buffer.on_episode_end((9, 9))
        return {name: array.tobytes() for name, array in batch.items()}

    return Reader("cpprb buffer", path, read, "cpprb buffer")


def _data_set_readers(folder):
    """Return the readers of the two files of a data set. The process finds data sets in `folder` from now on."""
    folder.mkdir()
    os.environ["MINARI_DATASETS_PATH"] = str(folder)
    env, name = make_goal_env(ENVIRONMENT), "demo/point-v0"
    shapes = {key: space.shape for key, space in env.observation_space.items()}

    def episode(number):
        rng, steps = np.random.default_rng(number), 10 + number
        rows = {key: rng.uniform(-1, 1, (steps + 1, *shape)).astype(np.float32) for key, shape in shapes.items()}
        action = rng.uniform(-1, 1, (steps, 2)).astype(np.float32)
        return Episode(**rows, action=action, reward=-np.ones(steps), success=True, info={"load": np.arange(float(steps))})

    def read():
        read = read_episodes(name, read_spec(env), ("load",))
        return [
            [np.asarray(value).tobytes() for value in vars(each).values() if not isinstance(value, dict)] for each in read
        ]

    write_episodes(name, env, [episode(number) for number in range(3)], "a test")
    for file in ("main_data.hdf5", "metadata.json"):
        yield Reader(f"data set {file}", folder / name / "data" / file, read, has_checksum=True)

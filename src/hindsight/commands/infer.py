"""`hindsight infer`: play some episodes of a task, find its structure in them, and write it as a recipe."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

from ..envs.goal_env import close_env, make_goal_env, read_spec
from ..envs.random_play import Environment
from ..recipes.files import write_recipe
from ..records import Array, ArraySpec, Episode
from ..rollout.collect import Observation, environment_seed, play_episode
from ..structure import ProbingController, Structure, infer_structure

LONGEST_REPEAT = 5  # steps that a random action is repeated at most
STREAM = 5  # of the run's seeds: training and evaluation never use it
PROBING = 0.75  # steps that seek contact, relative to the random steps


class RandomActions:
    """Uniformly random actions, each repeated for 1 to LONGEST_REPEAT steps: bodies with inertia move farther by these."""

    def __init__(self, action: ArraySpec, rng: np.random.Generator) -> None:
        self._low, self._high = action.bounds()
        self._dtype, self._rng = action.dtype, rng
        self._left, self._action = 0, np.zeros(action.shape)

    def __call__(self, observation: Observation) -> Array:
        """Return the action for one observation."""
        if not self._left:
            self._action = self._rng.uniform(self._low, self._high).astype(self._dtype)
            self._left = int(self._rng.integers(1, LONGEST_REPEAT + 1))
        self._left -= 1
        return self._action


def infer_task(environment: str, steps: int, seed: int) -> Structure:
    """Play about `steps` random steps, then PROBING times as many that seek contact, and return what they show.

    Raises what making and playing the environment raises, and InputError for a task without flat observations.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))
    env = make_goal_env(environment)
    with contextlib.ExitStack() as stack:
        stack.callback(close_env, env)
        spec = read_spec(env)
        episodes = _play(env, RandomActions(spec.action, rng), steps, seed, first=0)
        found = infer_structure(episodes, spec)
        if found.contact is None:
            return found
        controller = ProbingController(found.controlled, found.contact, spec.action, rng)
        probing = _play(env, controller, int(PROBING * steps), seed, first=len(episodes))
        return infer_structure(episodes, spec, probing)


def _play(env: Environment, act: RandomActions | ProbingController, steps: int, seed: int, first: int) -> list[Episode]:
    episodes: list[Episode] = []
    while sum(map(len, episodes)) < steps:
        if isinstance(act, ProbingController):
            act.start_episode()
        number = first + len(episodes)
        episodes.append(play_episode(env, act, environment_seed(seed, STREAM, number), number, limit=steps))
    return episodes


def save_structure(environment: str, steps: int, structure: Structure, path: Path) -> None:
    """Write the options that follow from the structure as a recipe, each with its evidence. Raises FileError."""
    title = f"Inferred from {steps:,} random steps of {environment} and from probing steps."
    comments = {finding.option: finding.evidence for finding in structure.findings()}
    write_recipe(path, title, {"automatic": True}, structure.options(), comments)

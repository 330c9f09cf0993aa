"""A task of the proving ground: a goal environment, its budget, and a scripted policy that solves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt

Observation = Mapping[str, Any]
Action = npt.NDArray[Any] | int
USUAL_BUDGET = 20_000  # environment steps; a task with a larger budget says why

FAMILIES = {
    "obstacles": "reach among obstacles",
    "fragile": "bodies that break or die",
    "push": "push",
    "pull": "pull, open",
    "grasp": "grasp",
    "several-objects": "several objects, mixed goals",
    "several-bodies": "several bodies",
    "hit": "hit",
    "later": "columns that matter later",
    "angles": "angles",
    "rewards": "rewards of other kinds",
    "units": "other units and forms",
    "not-a-robot": "not a robot",
    "discrete": "discrete",
}


@dataclass(frozen=True)
class Task:
    """A task. Its id for Gymnasium is "tasks:NAME", if the folder `benchmarks` is on the path of Python.

    name: as in "DiscPuck-v0".
    family: one of FAMILIES.
    status: "open": developers may read it. "closed": they see its name and its results only.
    make: a class or a function of a module that returns a new environment, without a time limit.
    time_limit: steps after which an episode is truncated.
    policy: returns a scripted policy for one episode: observation -> action.
    budget: environment steps of a training run.
    why_larger: why the budget is above USUAL_BUDGET.
    """

    name: str
    family: str
    status: Literal["open", "closed"]
    make: Callable[..., gymnasium.Env[Any, Any]]
    time_limit: int
    policy: Callable[[], Callable[[Observation], Action]]
    budget: int = USUAL_BUDGET
    why_larger: str = ""

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {self.family!r}.")
        if self.budget > USUAL_BUDGET and not self.why_larger:
            raise ValueError(f"{self.name} has a budget of {self.budget}, above {USUAL_BUDGET}. Say why in `why_larger`.")

    def register(self) -> None:
        """Register the environment with Gymnasium."""
        gymnasium.register(self.name, entry_point=self.make, max_episode_steps=self.time_limit)


def success_of_script(task: Task, episodes: int, first_seed: int = 0) -> float:
    """Return the fraction of episodes that end in success under the scripted policy."""
    successes = []
    with gymnasium.make(task.name) as env:
        for seed in range(first_seed, first_seed + episodes):
            observation, info = env.reset(seed=seed)
            act, is_over = task.policy(), False
            while not is_over:
                observation, _, terminated, truncated, info = env.step(act(observation))
                is_over = terminated or truncated
            successes.append(bool(info["is_success"]))
    return float(np.mean(successes))

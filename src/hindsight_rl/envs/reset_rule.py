"""The rule for resets: a seed should lead to the same episode, whatever was played before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..options.settings import ResetMode
from .probe import Probe, is_replay
from .random_play import Environment, RandomEpisode, describe_failure
from .resets import COMPARED_SEEDS, LARGEST_GAP, compare_resets

MOST_LISTED = 10  # values in a sentence
Answer = tuple[str, str]  # a level, and a sentence that names its evidence


def played_twice(probe: Probe) -> list[tuple[str, RandomEpisode, RandomEpisode]]:
    """Return episodes, and their first steps played again after what is named: with exact resets they are equal."""
    pairs = [("a reset with the same seed", probe.random[0], probe.replay)]
    if probe.replay_after_success is not None:
        pairs.append(("a success and a reset with the same seed", probe.random[0], probe.replay_after_success))
    if len(probe.with_goals) > 2:
        pairs.append(("another goal and a reset with the same seed and goal", probe.with_goals[0], probe.with_goals[2]))
    return pairs


def resets_are_exact(probe: Probe) -> bool:
    """Whether what was played twice is equal, bit by bit."""
    return all(is_replay(again, first) for _, first, again in played_twice(probe))


def check_resets(probe: Probe, make: Callable[[], Environment] | None = None, mode: ResetMode = "exact") -> Answer:
    """A reset with a seed should lead to the same episode.

    make: returns another environment; None: none can be made. mode: "reuse": near to the same is enough.
    """
    differing = [each for each in played_twice(probe) if not is_replay(each[2], each[1])]
    if not differing:
        return "ok", f"a reset with the same seed leads to the same {len(probe.replay)} steps, bit by bit"
    after, episode, replay = differing[0]
    first, again = (dict[str, Any](each.observations, reward=[0.0, *each.rewards]) for each in (episode, replay))
    found = f"after {after}, the same actions lead to other values: {_differences(first, again)}"
    fix = "let reset set all that an earlier episode may have changed, also in the simulator, as MuJoCo's qacc_warmstart"
    if make is None:
        return "warning", f"{found}. Draw random numbers with self.np_random, and {fix}"
    try:
        seeds = COMPARED_SEEDS[: 1 if mode == "exact" else None]
        follows_success = replay is probe.replay_after_success
        compared = compare_resets(probe.env, make, seeds, probe.play_success if follows_success else None)
    except Exception as problem:
        return "error", (
            f"{found}. With another environment of its kind in the same process it fails ({describe_failure(problem)}). "
            f"They may share a simulator, as in PyBullet without physicsClientId. Give each its own"
        )
    if mode == "exact" and not compared.new_are_equal:
        return "warning", (
            f"{found}. The environment is made again for each episode, which takes {compared.make_seconds:.2g} s, but two "
            f"new ones with the same seed differ too. Draw random numbers with self.np_random, not with np.random or random"
        )
    if mode == "exact":
        n_steps = probe.spec.max_episode_steps or len(probe.random[0])
        price = f"making it takes {compared.make_seconds:.2g} s, simulating it {compared.step_seconds * n_steps:.2g} s"
        reuse = ". --reset-mode reuse resets one environment" if compared.is_similar else ""
        return "warning", f"{found}. The environment is made again for each episode: {price}{reuse}. To avoid this, {fix}"
    if compared.is_similar:
        shared = "One environment is reset for all episodes, so the same bytes are not promised"
        return "warning", f"{found}, but {compared}. {shared}"
    return "error", (
        f"reset_mode='reuse' expects the first observations of a new environment within {LARGEST_GAP:.0%} of the standard "
        f"deviation of each column, but {compared}. Leave out reset_mode, or {fix}"
    )


def _differences(first: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    """Return by how much each part of two episodes differs, and where first."""
    n_rows = min(len(first["reward"]), len(again["reward"]))
    gaps = {
        key: np.abs(np.subtract(first[key][:n_rows], again[key][:n_rows], dtype=float)).reshape(n_rows, -1) for key in first
    }
    if not (differing := {key: gap for key, gap in gaps.items() if gap.any()}):
        return "the number of steps"
    sizes = ", ".join(f"{key} by up to {gap.max():g}" for key, gap in differing.items())
    key, gap = min(differing.items(), key=lambda item: int(item[1].any(1).argmax()))
    step = int(gap.any(1).argmax())
    columns = f", columns {listed(np.flatnonzero(gap[step]).tolist())}" if gap.shape[1] > 1 else ""
    return f"{sizes}, first at step {step} in {key}{columns}"


def listed(values: Sequence[object]) -> str:
    """Return the first values with commas."""
    return ", ".join([*map(str, values[:MOST_LISTED]), *["..."][: len(values) > MOST_LISTED]])

"""What a file says of a buffer: the arguments that make it again, and what it must share with the buffer that loads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ..errors import FileError, OptionError
from ..options import Relabel, ReplayOptions
from ..records import Array, Episode, GoalSpec, read_record, to_plain
from ..records.reward_scale import RewardScale
from .open_episodes import OpenEpisodes
from .rows import check_stored, fraction_of_one, row_dtype
from .sampler import RandomNumbers, count_stored_goals
from .strategies import Strategy, read_strategy
from .timeline import Timeline
from .transforms import Pipeline

SAVED_ARGUMENTS = (
    "capacity",
    "n_envs",
    "episode_length",
    "autoreset",
    "success_reward",
    "failure_reward",
    "discount",
    "subgoals",
)
MUST_AGREE = ("capacity", "episode_length", "dtype", "n_envs")
AGREEING_OPTIONS = ("info_keys", "prioritized", "alpha", "energy_priority", "energy_cap", "energy_remaining", "relabel_at")


class BufferParts(Protocol):
    """The parts of a `HindsightBuffer` that are saved, or that a saved one must fit."""

    timeline: Timeline
    open_episodes: OpenEpisodes
    pipeline: Pipeline
    options: ReplayOptions
    functions: dict[str, Any]
    random: RandomNumbers
    strategy: Strategy
    beta: float
    reward_scale: RewardScale | None


def describe(buffer: BufferParts) -> dict[str, Any]:
    """Return what makes a buffer again, except for functions, as strict JSON."""
    timeline, pipeline, strategy = buffer.timeline, buffer.pipeline, buffer.strategy
    return {
        "spec": timeline.spec.to_json(),
        "capacity": timeline.capacity,
        "episode_length": timeline.episode_length,
        "dtype": timeline.rows["reward"].dtype.name,
        "n_envs": buffer.open_episodes.n_envs,
        "autoreset": buffer.open_episodes.autoreset,
        "failure_reward": pipeline.rewards[0],
        "success_reward": pipeline.rewards[1],
        "reward_scale": None if pipeline.scale is None else to_plain(pipeline.scale),
        "discount": pipeline.discount,
        "subgoals": list(pipeline.subgoals),
        "options": buffer.options.replace(strategy="future", relabel="").to_dict(),  # the strategy may have changed since
        "strategy": None if callable(strategy) else str(strategy),
        "functions": [name for name, function in buffer.functions.items() if function is not None],
        "beta": buffer.beta,
    }


def load_state(buffer: BufferParts, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
    """See `HindsightBuffer.load_state_dict`. All checks come before the first change."""
    timeline, open_episodes = buffer.timeline, buffer.open_episodes
    try:
        _refuse_other_kind(buffer, data)
        timeline.check(arrays)
        open_episodes.check(arrays)
        check_stored("random state", arrays["random_state"], (1,), np.uint64)
        scale = data["reward_scale"] and read_record(RewardScale, data["reward_scale"], "scale of the rewards")
        beta, strategy = fraction_of_one("beta", data["beta"]), read_strategy(data["strategy"])
    except (KeyError, TypeError, AttributeError, OptionError) as problem:
        raise FileError(f"The stored buffer is malformed ({problem!r}). It is not ours, or damaged.") from None
    timeline.load(arrays)
    open_episodes.load(arrays)
    buffer.random.state[:] = arrays["random_state"]
    buffer.beta, buffer.reward_scale = beta, scale
    if strategy is not None and buffer.options.relabel_at == "sample":
        buffer.strategy = strategy


def saved_arguments(arrays: Mapping[str, Array], data: Mapping[str, Any], strategy: Strategy | None) -> dict[str, Any]:
    """Return the arguments of a saved buffer, with which it is made again. Raises FileError if they do not fit."""
    options = ReplayOptions(**data["options"])
    strategy = read_strategy(data["strategy"]) if strategy is None else strategy
    if strategy is None:
        raise FileError("It used a function as strategy, which is not in the file. Pass strategy=...")
    if options.n_sampled_goal is None or not isinstance(strategy, Relabel):  # else it is set later
        options = options.replace(strategy=strategy)
    if data["n_envs"] != len(arrays["open_steps"]):
        raise FileError(f"n_envs is {data['n_envs']}, but the file has {len(arrays['open_steps'])} open episodes.")
    spec = GoalSpec.from_json(data["spec"])
    row = row_dtype(spec, options.info_keys, data["dtype"], count_stored_goals(options))
    if arrays["open_rows"].nbytes < row.itemsize:  # each environment has a row there: nothing larger is allocated
        raise FileError(f"A row of its task takes {row.itemsize:,} bytes, but its rows are smaller.")
    spaces = {"observation_space": spec, "action_space": None}
    return {name: data[name] for name in SAVED_ARGUMENTS} | spaces | {"options": options}


def saved_episodes(arrays: Mapping[str, Array], data: Mapping[str, Any]) -> list[Episode]:
    """Return the episodes of a saved buffer, the oldest first, in the dtypes of its spaces.

    Their success and number are not stored. Raises FileError for a malformed state.
    """
    try:
        arguments = saved_arguments(arrays, data, "future")
        spec, options = arguments["observation_space"], arguments["options"]
        sizes = arguments["capacity"], arguments["episode_length"]
        timeline = Timeline(spec, *sizes, options.info_keys, data["dtype"], count_stored_goals(options))
        timeline.check(arrays)
        timeline.load(arrays)
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError) as problem:
        raise FileError(f"The stored buffer is malformed ({problem!r}). It is not ours, or damaged.") from None
    return [_in_dtypes_of(spec, episode) for episode in timeline.episodes()]


def _in_dtypes_of(spec: GoalSpec, episode: Episode) -> Episode:
    parts = {"observation": spec.observation, "achieved_goal": spec.goal, "desired_goal": spec.goal, "action": spec.action}
    return replace(episode, **{name: getattr(episode, name).astype(part.dtype) for name, part in parts.items()})


def _refuse_other_kind(buffer: BufferParts, data: Mapping[str, Any]) -> None:
    """Raise FileError unless the description `data` of a saved buffer fits `buffer`."""
    spec, timeline, mine = GoalSpec.from_json(data["spec"]), buffer.timeline, describe(buffer)
    options = ReplayOptions(**data["options"])
    pairs = [(name, data[name], mine[name]) for name in MUST_AGREE]
    pairs += [(name, getattr(options, name), getattr(buffer.options, name)) for name in AGREEING_OPTIONS]
    differences = [f"{name} {theirs!r} instead of {wanted!r}" for name, theirs, wanted in pairs if theirs != wanted]
    if row_dtype(spec, options.info_keys, data["dtype"], timeline.n_stored_goals) != timeline.rows.dtype:
        differences.insert(0, timeline.spec.difference(spec) or "other dtypes of its spaces")
    if differences:
        raise FileError(f"The stored buffer does not fit this one. It has {'; '.join(differences)}.")

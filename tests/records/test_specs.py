"""Specs: spaces, differences, and plain data."""

import json
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from hindsight_rl.errors import FileError, GoalEnvError
from hindsight_rl.records import ArraySpec, GoalSpec

BOX, ACTION = ArraySpec((2,), "float64"), ArraySpec((2,), "float32", (-1.0,), (1.0,))
SPEC = GoalSpec(BOX, BOX, ACTION, 50, -1.0, 0.0, "Task-v0")


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Box(-1, 1, (2, 3)), ArraySpec((2, 3), "float32", (-1.0,), (1.0,))),
        (
            spaces.Box(np.array([0.0, 1.0]), np.array([2.0, 3.0]), dtype=np.float64),
            ArraySpec((2,), "float64", (0.0, 1.0), (2.0, 3.0)),
        ),
        (spaces.Discrete(3, start=2), ArraySpec((), "int64", (2.0,), (4.0,), 3)),
        (spaces.MultiBinary(4), ArraySpec((4,), "int8", (0.0,), (1.0,))),
        (spaces.MultiDiscrete([3, 5], start=[1, 0]), ArraySpec((2,), "int64", (1.0, 0.0), (3.0, 4.0))),
    ],
)
def test_the_spec_of_a_space(space, expected):
    assert ArraySpec.from_space(space, "goal") == expected


@pytest.mark.parametrize(("own", "given", "expected"), [(50, 20, 20), (50, 200, 50), (50, None, 50), (None, 20, 20)])
def test_the_smaller_time_limit_counts(own, given, expected):
    assert replace(SPEC, max_episode_steps=own).limited(given).max_episode_steps == expected


def test_other_spaces_are_refused():
    with pytest.raises(GoalEnvError, match=r"for goal, got a Text space.*FlattenGoalEnv"):
        ArraySpec.from_space(spaces.Text(3), "goal")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"env_id": None, "max_episode_steps": None, "reward_low": -5.0}, ""),
        ({"observation": ArraySpec((3,), "float64")}, "observation (2,) float64 against (3,) float64"),
        ({"goal": ArraySpec((2,), "float32", (0.0,), (1.0,))}, ""),  # bounds of goals do not matter to a policy
        ({"action": ArraySpec((2,), "float32", (-1.0, -1.0), (1.0, 1.0))}, ""),
        (
            {"action": ArraySpec((2,), "float32", (-1.0,), (2.0,))},
            "action bounds (-1.0,) to (1.0,) against (-1.0,) to (2.0,)",
        ),
        ({"action": ArraySpec((), "int64", (0.0,), (3.0,), 4)}, "action (2,) float32 against () int64"),
    ],
)
def test_difference(changes, expected):
    assert SPEC.difference(replace(SPEC, **changes)) == expected


def test_discrete_actions_that_start_elsewhere_differ():
    spec = replace(SPEC, action=ArraySpec((), "int64", (0.0,), (3.0,), 4))
    other = replace(SPEC, action=ArraySpec((), "int64", (1.0,), (4.0,), 4))
    assert spec.difference(other) == "action bounds (0.0,) to (3.0,) against (1.0,) to (4.0,)"


def test_a_spec_is_written_as_strict_json_and_read():
    for spec in (SPEC, replace(SPEC, action=ArraySpec((), "int64", (0.0,), (3.0,), 4), reward_low=-np.inf, env_id=None)):
        assert GoalSpec.from_json(json.loads(json.dumps(spec.to_json(), allow_nan=False))) == spec


@pytest.mark.parametrize(
    "change",
    [
        {"goal": None},
        {"goal": {}},
        {"reward_low": "low"},
        {"observation": {**SPEC.to_json()["observation"], "dtype": "number"}},
        {"observation": {**SPEC.to_json()["observation"], "dtype": "9" * 5000}},
        {"observation": {**SPEC.to_json()["observation"], "shape": [-1]}},
        {"observation": {**SPEC.to_json()["observation"], "n_values": 0}},
        {"observation": {**SPEC.to_json()["observation"], "shape": [], "n_values": -1}},
        {"action": {**SPEC.to_json()["action"], "low": [0.0, 0.0]}},
        {"action": {**SPEC.to_json()["action"], "low": [0.0] * 3, "high": [1.0] * 3}},
    ],
)
def test_a_malformed_spec_is_refused(change):
    with pytest.raises(FileError, match="description of the task is malformed"):
        GoalSpec.from_json(SPEC.to_json() | change)
    with pytest.raises(FileError, match="malformed"):
        GoalSpec.from_json({})

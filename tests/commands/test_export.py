"""An exported policy acts like `Policy.predict`."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from hindsight_rl.agents import AGENT_NAMES, make_agent
from hindsight_rl.agents.policy import Policy
from hindsight_rl.commands.export import export_onnx, export_torchscript
from hindsight_rl.errors import MissingExtraError
from hindsight_rl.options import AGENT_OPTIONS, DISCRETE_AGENTS
from hindsight_rl.recipes import load_recipe
from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.task_structure.waypoints import Waypoints
from hindsight_rl.training.resolve import resolve_settings
from hindsight_rl.training.saved_model import SavedModel

NUMBERS, BITS = ArraySpec((6,), "float64"), ArraySpec((4,), "int8", (0.0,), (1.0,))
GOAL, CHOICE = ArraySpec((2,), "float64", (-1.0,), (3.0,)), ArraySpec((), "int64", (3.0,), (9.0,), 7)
IMAGE = ArraySpec((8, 8, 1), "uint8", (0.0,), (255.0,))
QUATERNION = ArraySpec((4,), "float64", (-1.0,), (1.0,))
GRID = ArraySpec((2,), "int64", (0.0,), (3.0,))
ARM, BUTTONS = ArraySpec((3,), "float32", (-2.0, 0.0, -1.0), (1.0, 5.0, 1.0)), ArraySpec((), "int64", (2.0,), (5.0,), 4)
ROWS = 50


def rows_of(array, rng):
    if array.n_values is not None:
        return rng.integers(int(array.low[0]), int(array.high[0]) + 1, ROWS)
    if array.dtype == "float64":
        return rng.normal(size=(ROWS, *array.shape))
    return rng.integers(0, int(array.high[0]) + 1, (ROWS, *array.shape))


def trained(name, observation=NUMBERS, goal=GOAL, **options):
    """A policy with normalizer statistics, and rows of observations."""
    spec = GoalSpec(observation, goal, BUTTONS if name in DISCRETE_AGENTS else ARM, 50, -1.0, 0.0)
    rng = np.random.default_rng(0)
    options = AGENT_OPTIONS[name](hidden=(16, 16), device="cpu", **options)
    agent = make_agent(name, spec, options, seed=1)
    observed = [rows_of(array, rng) for array in (observation, goal, goal)]
    agent.observe(Episode(*observed, np.zeros((ROWS - 1, 3)), np.zeros(ROWS - 1)))
    if agent.waypoints.waypoints.size:
        agent.waypoints = Waypoints.plan([observed[1]], len(agent.waypoints.waypoints))
    settings = replace(resolve_settings(load_recipe("default"), spec, name, {}), agent_options=options)
    return SavedModel.take(agent, settings, spec, {}), [rows_of(array, rng) for array in (observation, goal, goal)]


def written(saved, folder):
    """The path of the file of a policy."""
    saved.write(folder / "policy.safetensors")
    return folder / "policy.safetensors"


def wanted(saved, observed):
    policy = Policy(saved.policy)
    policy.load(saved.weights)
    return policy.predict(*observed)


SUBGOALS = tuple(f"near{i} achieved={i},1 goal=4,5 tolerance=1 switch_distance={2 - i / 2}" for i in (0, 1))
HIDDEN = {"goal_features": "relative", "hidden_observation": (0, 3), "hidden_goal": (0, 1)}
CASES = [
    *((name, {}) for name in AGENT_NAMES),
    ("td3", {"goal_features": "relative", "observe_achieved_goal": True, "actor_layer_norm": True}),
    ("sac", {**HIDDEN, "observe_achieved_goal": True, "actor_layer_norm": True, "subgoals": SUBGOALS}),
    ("ddpg", {"column_differences": ("3-0", "2-1"), "subgoals": SUBGOALS}),
    ("td3", {"n_waypoints": 8, "action_scale": 0.3}),
    ("sac", {"goal_features": "agreement", "normalize": False}),
    ("dqn", {"observation": BITS, "goal": BITS, "goal_features": "agreement", "dueling": True}),
    ("dqn", {"observation": CHOICE, "goal": CHOICE, "goal_features": "agreement", "critic_layer_norm": True}),
    ("dqn", {"observation": IMAGE, "goal": IMAGE, "image_channels": (4, 4)}),
    ("dqn", {"observation": GRID, "goal": GRID, "categories": ("o0-1=0..3", "g0-1=0..3")}),
    ("td3", {"goal": QUATERNION, "goal_features": "relative", "rotations": ("0,1,2,3",)}),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize(("name", "options"), CASES)
def test_torchscript_equals_the_policy(tmp_path, name, options):
    saved, observed = trained(name, **options)
    export_torchscript(written(saved, tmp_path), tmp_path / "policy.pt")
    policy = torch.jit.load(tmp_path / "policy.pt")
    for rows in (slice(None), slice(0, 1)):
        got = policy(*(torch.from_numpy(values[rows].astype(np.float32)) for values in observed)).numpy()
        expected = wanted(saved, [values[rows] for values in observed])
        assert got.shape == expected.shape
        assert got == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [CASES[7], CASES[9], CASES[11]])  # together they have every kind of layer
def test_onnx_equals_the_policy_and_has_the_names_of_the_observation(tmp_path, name, options):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    saved, observed = trained(name, **options)
    export_onnx(written(saved, tmp_path), tmp_path / "policy.onnx")
    session = runtime.InferenceSession(tmp_path / "policy.onnx")
    names = ("observation", "achieved_goal", "desired_goal")
    assert {i.name for i in session.get_inputs()} == set(names)
    for rows in (slice(None), slice(0, 1)):
        inputs = {key: values[rows].astype(np.float32) for key, values in zip(names, observed, strict=True)}
        (got,) = session.run(["action"], inputs)
        assert got == pytest.approx(wanted(saved, [values[rows] for values in observed]), abs=1e-5)


def test_without_onnx_the_error_has_the_install_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[onnx\]"):
        export_onnx(written(trained("td3")[0], tmp_path), tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()

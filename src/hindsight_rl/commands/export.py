"""`hindsight-rl export`: a policy as one ONNX or TorchScript file that runs without hindsight-rl, its card, its replay."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..agents.networks import Network, actor_architecture
from ..agents.policy import PolicySpec, PolicyWeights
from ..envs.goal_env import make_goal_env, read_spec
from ..envs.minari_data import check_new, write_episodes
from ..errors import FileError, OptionError, needs_extra
from ..records import OBSERVATION_KEYS, ArraySpec
from ..storage import save_bytes
from ..task_structure.subgoals import TASK
from ..task_structure.waypoints import Waypoints
from ..training.assemble import environment_id
from ..training.checkpoint import read_replay
from ..training.saved_model import SavedModel
from .model_card import write_card
from .policies import environment_of
from .terminal import console_of, say


class TensorFunctions:
    """The NumPy functions that `Layout.assemble`, `Subgoals.acting_goals` and `Waypoints.toward` call, for tensors."""

    float32, int64 = torch.float32, torch.int64
    arange, broadcast_to = staticmethod(torch.arange), staticmethod(torch.broadcast_to)
    sqrt, square, where = staticmethod(torch.sqrt), staticmethod(torch.square), staticmethod(torch.where)

    @staticmethod
    def asarray(values: Any, dtype: torch.dtype | None = None) -> Tensor:
        """Return a tensor, as numpy.asarray returns an array."""
        return torch.as_tensor(values, dtype=dtype)

    @staticmethod
    def take(values: Tensor, columns: tuple[int, ...], axis: int) -> Tensor:
        """Return columns along an axis."""
        return values.index_select(axis, torch.tensor(columns, dtype=torch.int64))

    @staticmethod
    def concatenate(tensors: tuple[Tensor, ...], axis: int, dtype: torch.dtype, casting: str) -> Tensor:
        """Return the tensors, converted to one dtype, along an axis."""
        return torch.cat([tensor.to(dtype) for tensor in tensors], axis)


class ExportedPolicy(torch.nn.Module):
    """`Policy.predict` without exploration, in torch."""

    def __init__(self, spec: PolicySpec, weights: PolicyWeights) -> None:
        super().__init__()
        self.spec = spec
        self.mean, self.scale = torch.from_numpy(weights.input_mean.copy()), torch.from_numpy(weights.input_scale.copy())
        self.network = Network(actor_architecture(spec), torch.from_numpy(weights.flat.copy()))
        self.waypoints = Waypoints(weights.waypoints, weights.next_waypoint) if spec.options.n_waypoints else None
        self.center, self.half_width = (torch.from_numpy(array).float() for array in spec.action_range)

    def forward(self, observation: Tensor, achieved_goal: Tensor, desired_goal: Tensor) -> Tensor:
        """Return actions in the environment's units, (N, *shape) float32, or (N,) int64 for a Discrete space.

        observation, achieved_goal, desired_goal: (N, ...) float32, as the environment returns them.
        """
        x = (self._inputs(observation, achieved_goal, desired_goal) - self.mean) * self.scale
        if self.spec.options.normalize:
            x = x.clamp(-self.spec.options.normalizer_clip, self.spec.options.normalizer_clip)
        outputs = self.network(x)[0]
        if self.spec.kind == "discrete":
            return outputs.argmax(1) + int(self.spec.task.action.low[0])
        action = outputs[:, : self.spec.task.action.size].tanh() * self.half_width + self.center
        return action.reshape(-1, *self.spec.task.action.shape)

    def _inputs(self, observation: Tensor, achieved_goal: Tensor, desired_goal: Tensor) -> Tensor:
        """Return the network input before normalization, (N, columns)."""
        observation = _as_stored(self.spec.task.observation, observation)
        achieved, goal = (_as_stored(self.spec.task.goal, goals) for goals in (achieved_goal, desired_goal))
        subgoal = torch.full_like(observation[:, 0], TASK) if self.spec.subgoals else TASK
        if self.waypoints is not None:
            goal = self.waypoints.toward(achieved, goal, xp=TensorFunctions)
        acting = self.spec.parsed_subgoals.acting_goals(observation, achieved, goal, subgoal, xp=TensorFunctions)
        subgoal, achieved, goal = acting
        leading = observation.shape[:1]
        inputs: Tensor = self.spec.layout.assemble(
            leading, observation, achieved, goal, subgoal=subgoal, xp=TensorFunctions
        )
        return inputs


def export_torchscript(run: Path, path: Path) -> None:
    """Write the policy of a run for `torch.jit.load`, in Python or C++."""
    content = io.BytesIO()
    with _silence():  # torch recommends torch.export, but C++ cannot load its files
        trace: Any = torch.jit.trace  # without types
        torch.jit.save(trace(*_module_and_example(SavedModel.read(run))), content)
    save_bytes(path, content.getvalue())


def export_onnx(run: Path, path: Path) -> None:
    """Write the policy of a run for ONNX Runtime. Inputs are named as the observation's keys, the output is `action`.

    Raises MissingExtraError without onnx.
    """
    module, example = _module_and_example(SavedModel.read(run))
    n_rows = torch.export.Dim("rows")
    with needs_extra("onnx", "ONNX export needs onnx and onnxscript"):
        import onnxscript  # noqa: F401 - torch needs it, but fails late and with a long message
    with _silence():
        program: Any = torch.onnx.export(
            module,
            example,
            input_names=list(OBSERVATION_KEYS),
            output_names=["action"],
            dynamic_shapes={name: {0: n_rows} for name in OBSERVATION_KEYS},
            dynamo=True,
            verbose=False,
        )
    save_bytes(path, program.model_proto.SerializeToString())


FILES = {"onnx": export_onnx, "torchscript": export_torchscript, "card": write_card}


def export(arguments: Namespace) -> None:
    """Write each of the named files, and the replay as a data set. Raises OptionError if none is named."""
    files = {name: path for name in FILES if (path := getattr(arguments, name)) is not None}
    if not files and arguments.replay is None:
        raise OptionError("No file is named. Give --onnx FILE, --torchscript FILE, --card FILE or --replay NAME.")
    for name, path in files.items():
        with console_of(sys.stderr).status(f"writing {path}"):
            FILES[name](arguments.run, path)
        say(f"{'model card' if name == 'card' else 'policy'}: {path}")
    if arguments.replay is not None:
        export_replay(arguments.run, arguments.replay, arguments.env, arguments.trust_module)


def export_replay(run: Path, name: str, env: str | None, trusts_module: bool) -> None:
    """Write the episodes of the replay buffer of a run as the data set `name`, and print what it is.

    env, trusts_module: see `environment_of`. Raises FileError without a checkpoint, and what `write_episodes` raises.
    """
    env, saved = environment_of(run, env, trusts_module), SavedModel.read(run)
    rollout = saved.settings.rollout
    arguments = rollout.env_arguments, rollout.observation_keys
    with contextlib.closing(make_goal_env(env or environment_id(saved.spec), None, *arguments)) as environment:
        check_new(name, environment)
        if difference := saved.spec.difference(read_spec(environment)):
            raise FileError(f"The replay does not fit the environment: {difference}.")
        episodes = read_replay(run)
        write_episodes(name, environment, episodes, f"hindsight-rl {saved.settings.agent}, during training")
    say(f"data set: {name}, {len(episodes)} episodes of training, {sum(map(len, episodes))} steps")


def _module_and_example(saved: SavedModel) -> tuple[ExportedPolicy, tuple[Tensor, ...]]:
    """Return the policy and three rows of inputs: torch would take a single row for a constant.

    Raises OptionError if the policy plans over states: the networks alone act worse.
    """
    if saved.weights.has_plan:
        raise OptionError(
            "This policy plans over states, but an exported file holds networks alone. Train one "
            "with --no-plan-states, or act with HER.load(path).predict."
        )
    arrays = (saved.spec.observation, saved.spec.goal, saved.spec.goal)
    example = tuple(torch.zeros(3, *array.shape) + float(array.low[0] if array.n_values else 0) for array in arrays)
    return ExportedPolicy(saved.policy, saved.weights).eval(), example


def _as_stored(array: ArraySpec, values: Tensor) -> Tensor:
    """Return flat rows; Discrete values as integers."""
    rows = values.reshape(-1, array.size)
    return rows if array.n_values is None else rows.long()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress warnings of torch's exporters about their own internals and about optional packages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)

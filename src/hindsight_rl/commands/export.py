"""`hindsight-rl export`: a policy as one ONNX or TorchScript file that runs without hindsight-rl, its card, its replay."""

from __future__ import annotations

import contextlib
import io
import logging
import shlex
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from jinja2 import Template
from torch import Tensor

from ..agents.networks import Network
from ..agents.policy import PolicySpec, PolicyWeights
from ..envs.minari_data import check_new, write_episodes
from ..errors import OptionError, needs_extra
from ..records import OBSERVATION_KEYS, ArraySpec
from ..report.run import Run, read_run
from ..report.verdict import best_evaluation, duration, environment_steps, reward_range, solved_at_step
from ..storage import save_bytes
from ..task_structure.subgoals import TASK
from ..task_structure.waypoints import Waypoints
from ..training.checkpoint import read_replay
from ..training.saved_model import SavedModel
from .arguments import option_words
from .policies import made_environment, with_module
from .tasks import TEMPLATES
from .terminal import console_of, say

PACKAGES = ("hindsight-rl", "python", "torch", "numpy", "gymnasium")  # whose versions a card names


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
        self.network = Network(spec.architecture, torch.from_numpy(weights.flat.copy()))
        self.waypoints = Waypoints(weights.waypoints, weights.next_waypoint) if spec.options.n_waypoints else None
        self.center, self.half_width = (torch.from_numpy(array).float() for array in spec.action_range)

    def forward(self, observation: Tensor, achieved_goal: Tensor, desired_goal: Tensor) -> Tensor:
        """Return actions in the environment's units, (N, *shape) float32, or (N,) int64 for a Discrete space.

        observation, achieved_goal, desired_goal: (N, ...) float32, as the environment returns them; what the option
            `observation_keys` names is appended to the observation.
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
        subgoals, layout = self.spec.parsed_subgoals, self.spec.layout
        subgoal, achieved, goal = subgoals.acting_goals(observation, achieved, goal, subgoal, xp=TensorFunctions)
        observation, achieved, goal = subgoals.seen(subgoal, observation, achieved, goal, xp=TensorFunctions)
        rows = observation.shape[:1]
        inputs: Tensor = layout.assemble(rows, observation, achieved, goal, subgoal=subgoal, xp=TensorFunctions)
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
    saved = SavedModel.read(run)
    with contextlib.closing(made_environment(saved, env, trusts_module)) as environment:
        check_new(name, environment)
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


def write_card(run: Path, path: Path) -> None:
    """Write the model card of a run folder. Raises OptionError for a policy file, which has no record of its run."""
    if not run.is_dir():
        raise OptionError(f"A model card needs the folder of a run, got the file {run}. Give the run folder.")
    save_bytes(path, card_text(read_run(run), SavedModel.read(run)).encode())


def card_text(run: Run, saved: SavedModel) -> str:
    """Return the model card of a run with its policy."""
    machine = run.settings.machine.facts()
    versions = ", ".join(f"{name} {machine[name]}" for name in PACKAGES if name in machine)
    made = [("commit", f"`{machine.get('commit') or 'unknown'}`"), ("versions", versions), ("begun", run.settings.begun)]
    text = (TEMPLATES / "model_card.md.txt").read_text(encoding="utf-8")
    card: str = Template(text, trim_blocks=True, keep_trailing_newline=True).render(
        run=run,
        spec=saved.spec,
        options=run.options.to_dict(),
        reward=reward_range(saved.spec.reward_low, saved.spec.reward_high, "any number"),
        figures=list(figure_rows(run, saved)),
        command=train_command(run),
        made=made,
    )
    return card


def figure_rows(run: Run, saved: SavedModel) -> Iterator[tuple[str, str]]:
    """Yield what the policy reaches, and what it took."""
    facts, steps = saved.facts, solved_at_step(run)
    if "success_rate" in facts:
        low, high = facts["interval"]
        interval = f"(95 % interval {low:.1%} to {high:.1%})"
        yield "success", f"{facts['success_rate']:.1%} of {facts['episodes']} episodes without exploration {interval}"
        yield "mean return", f"{facts['return_mean']:.2f}"
    yield "policy of", environment_steps(facts.get("env_steps", 0), run.check_steps)
    limit = f"{run.options.solved_evaluations} evaluations in a row with at least {run.options.solved_at:.0%}"
    solved = "no" if steps is None else f"at {environment_steps(steps, run.check_steps)}"
    yield "solved", f"{solved}: {limit}" if best_evaluation(run) else "not known: there was no evaluation"
    yield "updates", f"{run.last('updates'):,.0f} in the whole run"
    machine = run.settings.machine.facts()
    cores = f"on {machine.get('cores', 'unknown')} cores ({machine.get('processor', 'unknown')})"
    yield "time", f"{duration(run.last('seconds'))} of collecting and updating, {cores}"
    yield "structure of the task", run.settings.variant


def train_command(run: Run) -> str:
    """Return the command line that trains such a policy again."""
    options, explained = run.options.to_dict(), run.settings.explained
    given = {name: options[name] for name, facts in explained.items() if facts.get("source") == "given" and name in options}
    module = given.pop("env_module", None) or options.get("env_module")
    environment = with_module(module, run.settings.spec.env_id)
    given.pop("seed", None)
    words = ["hindsight-rl", "train", environment, "--agent", run.settings.agent, "--recipe", run.settings.recipe]
    words += ["--seed", str(run.options.seed)]
    words += [word for name, value in given.items() for word in option_words(name, value)]
    return shlex.join(words)


FILES = {"onnx": export_onnx, "torchscript": export_torchscript, "card": write_card}

"""A policy for a robot that has no hindsight: one ONNX or TorchScript file with its normaliser and its action range."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .agents.images import convolution_views
from .agents.policy import LAYER_NORM_EPS, PolicySpec, PolicyWeights, count_weights, layer_views
from .errors import MissingExtraError
from .records import OBSERVATION_KEYS, ArraySpec
from .storage import save_bytes
from .training.checkpoint import SavedModel


class ExportedPolicy(torch.nn.Module):
    """What `Policy.predict` computes without exploration, in torch.

    forward: observation, achieved_goal and desired_goal, float32 with one leading axis (N, ...), as the environment shows
    them; returns the actions in the environment's units, (N, *shape) float32, or (N,) int64 where they are chosen.
    """

    def __init__(self, spec: PolicySpec, weights: PolicyWeights) -> None:
        super().__init__()
        self.spec = spec
        self.mean, self.scale = torch.from_numpy(weights.input_mean.copy()), torch.from_numpy(weights.input_scale.copy())
        flat = torch.from_numpy(weights.flat.copy())
        self.layers = [(w[0].T, b[0]) for w, b in layer_views(flat[-count_weights(spec.layer_sizes) :], spec.layer_sizes)]
        self.convolutions = convolution_views(flat, spec.encoding.sizes) if spec.encoding else []
        if spec.encoding:
            self.pixels, self.others = map(torch.from_numpy, (spec.encoding.pixel_columns, spec.encoding.other_columns))
        low, high = (torch.from_numpy(bound.ravel()) for bound in spec.action.bounds())
        self.center, self.half_width = ((high + low) / 2).float(), ((high - low) / 2).float()

    def forward(self, observation: Tensor, achieved_goal: Tensor, desired_goal: Tensor) -> Tensor:
        """The actions."""
        x = (self._inputs(observation, achieved_goal, desired_goal) - self.mean) * self.scale
        if self.spec.normalizer_clip is not None:
            x = x.clamp(-self.spec.normalizer_clip, self.spec.normalizer_clip)
        outputs = self._outputs(self._encoded(x))
        if self.spec.kind == "discrete":
            return outputs.argmax(1) + int(self.spec.action.low[0])
        action = outputs[:, : self.spec.action.size].tanh() * self.half_width + self.center
        return action.reshape(-1, *self.spec.action.shape)

    def _inputs(self, observation: Tensor, achieved_goal: Tensor, desired_goal: Tensor) -> Tensor:
        """As `Layout.assemble`: what the networks see, before it is normalised, (N, columns)."""
        layout, goal = self.spec.layout, self.spec.goal
        achieved, asked = _rows(goal, achieved_goal), _rows(goal, desired_goal)
        seen = _rows(self.spec.observation, observation)
        turn, achieved, asked = self._as_they_act(seen, achieved, asked)
        columns = [_coded(self.spec.observation, seen, layout.kept["observation"])]
        columns += [
            _coded(goal, each, layout.kept["goal"]) for each in (asked, achieved)[: 1 + layout.observe_achieved_goal]
        ]
        if layout.goal_features == "relative":
            columns.append(asked - achieved)
        if layout.goal_features == "agreement":
            columns.append(_agreement(goal, achieved, asked))
        if layout.column_differences:
            first, second = (seen[:, list(at)] for at in layout.differences)
            columns.append(first - second)
        if layout.n_subgoals:
            columns.append((turn == torch.arange(1, layout.n_subgoals + 1)).float())
        return torch.cat(columns, 1)

    def _as_they_act(self, seen: Tensor, achieved: Tensor, asked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `subgoals.acting_goals`: whose turn it is (N, 1), and that one's goals."""
        turn = torch.zeros_like(seen[:, :1])
        for number, subgoal in reversed(list(enumerate(self.spec.parsed_subgoals, 1))):
            reached, wanted = seen[:, list(subgoal.achieved)], seen[:, list(subgoal.goal)]
            is_off = (reached - wanted).square().sum(1, keepdim=True).sqrt() > subgoal.switch_distance
            turn = torch.where(is_off, float(number), turn)
            achieved, asked = torch.where(is_off, reached, achieved), torch.where(is_off, wanted, asked)
        return turn, achieved, asked

    def _encoded(self, x: Tensor) -> Tensor:
        """Images through their convolutions."""
        if self.spec.encoding is None:
            return x
        image = x[:, self.pixels]
        for weight, bias in self.convolutions:
            image = torch.nn.functional.conv2d(image, weight, bias, stride=2, padding=1).relu()
        return torch.cat((image.flatten(1), x[:, self.others]), 1)

    def _outputs(self, x: Tensor) -> Tensor:
        for weight, bias in self.layers[:-1]:
            x = x @ weight + bias
            x = torch.nn.functional.layer_norm(x, x.shape[1:], eps=LAYER_NORM_EPS) if self.spec.layer_norm else x
            x = x.relu()
        weight, bias = self.layers[-1]
        return torch.addmm(bias, x, weight)


def export_torchscript(saved: SavedModel, path: Path) -> None:
    """Write the policy for `torch.jit.load`, in Python or C++."""
    content = io.BytesIO()
    with _silence():  # torch would have us use torch.export, whose files C++ cannot load
        torch.jit.save(torch.jit.trace(*_module_and_example(saved)), content)
    save_bytes(path, content.getvalue())


def export_onnx(saved: SavedModel, path: Path) -> None:
    """Write the policy for ONNX Runtime and its like: the inputs are called as in the observation, the output `action`.

    Raises MissingExtraError without onnx.
    """
    module, example = _module_and_example(saved)
    n_rows = torch.export.Dim("rows")
    try:
        import onnxscript  # noqa: F401 - torch needs it, but would fail late and at length
    except ImportError:
        raise MissingExtraError('writing ONNX needs onnx and onnxscript: pip install "hindsight-rl[onnx]"') from None
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


EXPORTS: dict[str, Callable[[SavedModel, Path], None]] = {"onnx": export_onnx, "torchscript": export_torchscript}


def _module_and_example(saved: SavedModel) -> tuple[ExportedPolicy, tuple[Tensor, ...]]:
    """The policy, and three rows of inputs: not one, which would be taken for a constant."""
    arrays = (saved.spec.observation, saved.spec.goal, saved.spec.goal)
    example = tuple(torch.zeros(3, *array.shape) + float(array.low[0] if array.n_values else 0) for array in arrays)
    return ExportedPolicy(saved.policy, saved.weights).eval(), example


def _rows(array: ArraySpec, values: Tensor) -> Tensor:
    return values.reshape(-1, array.size)


def _coded(array: ArraySpec, values: Tensor, kept: tuple[int, ...] | None) -> Tensor:
    """Discrete values one-hot, all others as they are; of them the columns that are kept."""
    if kept is not None:
        return values[:, list(kept)]
    if array.n_values is None:
        return values
    return (values == torch.arange(array.n_values) + array.low[0]).float()


def _agreement(goal: ArraySpec, achieved: Tensor, asked: Tensor) -> Tensor:
    """1 where two goals agree and -1 where they differ; of a Discrete goal's binary digits."""
    if goal.n_values is not None:
        places = 2.0 ** torch.arange((goal.n_values - 1).bit_length())
        bits = [torch.floor((values - goal.low[0]) / places).remainder(2.0) for values in (achieved, asked)]
        return 1.0 - 2.0 * (bits[0] - bits[1]).abs()
    low, high = (torch.tensor(bound.ravel().tolist()) for bound in goal.bounds())
    width = torch.where(high > low, high - low, 1.0)
    units = [(2.0 * values - high - low) / width for values in (achieved, asked)]
    return units[0] * units[1]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Torch's exporters warn of their own insides, and of packages that they could do without."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)

"""Agent: an algorithm as the rest of the library sees it. Batches in, metrics and a policy out, its state as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import FileError
from ..records import OBSERVATION_KEYS
from .policy import Exploration, PolicySpec, PolicyWeights

if TYPE_CHECKING:  # loading torch is left to the algorithms
    import torch
    from torch import Tensor

    from ..records import Batch, Episode
    from .inputs import Inputs, Transitions
    from .networks import Adam

Array = npt.NDArray[Any]


class Algorithm(Protocol):
    """What a file such as `td3` must provide; an Agent does the rest.

    batches_per_update: how many batches one `learn` takes. weights: of all its networks that are not targets. tensors: all
    that it must remember to go on bit for bit, besides normalizer and generator. optimizers: through which every gradient
    reaches the weights.
    """

    batches_per_update: int
    policy_spec: PolicySpec
    inputs: Inputs
    generator: torch.Generator
    weights: Tensor
    tensors: dict[str, Tensor]
    optimizers: tuple[Adam, ...]

    def learn(self, transitions: Transitions) -> dict[str, Tensor]:
        """One update, always the same operations, all on the device: fit for a CUDA graph.

        Returns metrics, () tensors, and where transitions are weighted "priority", (P, B): how far each value was off.
        """

    def value(self, inputs: Tensor) -> Tensor:
        """What the critics expect of acting as the policy does, without noise, (N,); inputs: (N, n), as networks see."""

    def policy(self) -> Tensor:
        """The flat weights that acting needs."""

    def exploration(self, env_steps: int) -> Exploration:
        """How to act while collecting, after so many environment steps."""


class Agent:
    """What every agent does, whatever its algorithm.

    policy_ema: of the policy that its running mean takes over at each update; with 1 there is none. The mean wavers less
    from update to update; it is what is evaluated and kept, while the policy itself goes on collecting.
    """

    def __init__(self, algorithm: Algorithm, policy_ema: float = 1.0) -> None:
        self.algorithm = algorithm
        self.n_updates = 0  # critic steps so far
        self.policy_ema = policy_ema
        self._mean = algorithm.policy().clone() if policy_ema < 1 else None

    @property
    def batches_per_update(self) -> int:
        """How many batches one update takes."""
        return self.algorithm.batches_per_update

    @property
    def policy_spec(self) -> PolicySpec:
        """Everything about its policy but the numbers."""
        return self.algorithm.policy_spec

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Learn from arrays (batches_per_update, B, ...), or (B, ...) where that is 1, actions in the environment's units.

        Returns metrics, () tensors; they are not finite once the weights are not. Where the batch has weights, "priority"
        is among them, (batches_per_update, B): how far each value was off its target.
        """
        metrics = self.algorithm.learn(self.algorithm.inputs.transitions(batch, self.batches_per_update))
        self.n_updates += self.batches_per_update
        if self._mean is not None:
            self._mean.lerp_(self.algorithm.policy(), self.policy_ema)
        return metrics

    def observe(self, episode: Episode) -> None:
        """Take an episode up into the statistics that inputs are normalised by."""
        self.algorithm.inputs.observe(episode)

    def moments_of(self, episodes: Sequence[Episode]) -> Array:
        """What episodes add to those statistics, as one float64 vector, without taking them up."""
        return self.algorithm.inputs.moments_of(episodes)

    def observe_moments(self, moments: Array) -> None:
        """Take up what `moments_of` gave, here or elsewhere."""
        self.algorithm.inputs.observe_moments(moments)

    def share_gradients(self, average: Callable[[Tensor], None]) -> None:
        """Let `average` change every gradient, in place, before it is used."""
        for optimizer in self.algorithm.optimizers:
            optimizer.average = average

    def exploration(self, is_random: bool, env_steps: int = 0) -> Exploration:
        """How to act while collecting; `is_random` for the warm-up. env_steps: how many the run has made."""
        options, exploration = self.algorithm.inputs.options, self.algorithm.exploration(env_steps)
        if env_steps >= options.exploration_decay_start:
            exploration = exploration.less(options.exploration_decay)
        return replace(exploration, is_random=is_random, random_action_repeat=options.random_action_repeat)

    def values(self, episode: Episode) -> Array:
        """What the critics expected before each step of an episode, if the policy acted without noise, (T,).

        With subgoals, of acting for the task's own goal.
        """
        rows = (getattr(episode, key)[:-1] for key in OBSERVATION_KEYS)
        return np.asarray(self.algorithm.value(self.algorithm.inputs.rows(*rows)).cpu().numpy())

    def policy_weights(self) -> PolicyWeights:
        """Copies of what acting as well as it can needs: of the running mean, where there is one."""
        return self._published(self.algorithm.policy() if self._mean is None else self._mean)

    def collecting_weights(self) -> PolicyWeights:
        """Copies of what collecting needs: of the policy as it is."""
        return self._published(self.algorithm.policy())

    def _published(self, flat: Tensor) -> PolicyWeights:
        return PolicyWeights(flat.cpu().numpy().copy(), *self.algorithm.inputs.normalizer.mean_and_scale())

    def input_statistics(self) -> dict[str, float]:
        """Means over the numbers of an observation (`stats_o`) and of a goal (`stats_g`) of their running mean and std."""
        return self.algorithm.inputs.normalizer.summary()

    def is_finite(self) -> bool:
        """Whether no weight is NaN or infinite; waits for the device."""
        return bool(self.algorithm.weights.isfinite().all())

    def state_dict(self) -> dict[str, Array]:
        """Copies of everything needed to go on bit for bit."""
        return {
            **{name: tensor.cpu().numpy().copy() for name, tensor in self._tensors().items()},
            **self.algorithm.inputs.normalizer.state_dict(),
            "generator": self.algorithm.generator.get_state().numpy().copy(),
            "n_updates": np.array(self.n_updates, np.int64),
        }

    def _tensors(self) -> dict[str, Tensor]:
        return self.algorithm.tensors | ({} if self._mean is None else {"mean_policy": self._mean})

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take a `state_dict` back; raises FileError, naming the difference, before anything is changed."""
        _check_same_form(state, self.state_dict())
        generator, inputs = self.algorithm.generator, self.algorithm.inputs
        try:
            generator.set_state(generator.get_state().new_tensor(state["generator"]))
        except RuntimeError as problem:
            raise FileError(f"the state of the random generator is damaged ({problem})") from None
        for name, tensor in self._tensors().items():
            tensor.copy_(tensor.new_tensor(state[name]))
        inputs.normalizer.load_state_dict(state)
        inputs.refresh()
        self.n_updates = int(state["n_updates"])


def _check_same_form(state: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    missing, foreign = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
    if missing or foreign:
        raise FileError(
            f"this is not the state of such an agent: it lacks {', '.join(missing) or 'nothing'} and has "
            f"{', '.join(foreign) or 'nothing'} besides; was it saved by another agent?"
        )
    for name, wanted in expected.items():
        got = state[name]
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            raise FileError(
                f"{name} is {got.shape} {got.dtype}, but this agent needs {wanted.shape} {wanted.dtype}: "
                f"the options or the task differ from those it was saved with"
            )

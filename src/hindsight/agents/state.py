"""All that an agent must remember to go on bit for bit, as named NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import FileError
from .normalizer import Normalizer

Array = npt.NDArray[Any]


class AgentState:
    """Holds the live tensors, the normalizer and the generator of one agent, and counts its updates."""

    def __init__(self, tensors: Mapping[str, Tensor], normalizer: Normalizer, generator: torch.Generator) -> None:
        self.tensors, self.normalizer, self.generator = dict(tensors), normalizer, generator
        self.n_updates = 0

    def state_dict(self) -> dict[str, Array]:
        """Copies of everything, as arrays."""
        return {
            **{name: tensor.cpu().numpy().copy() for name, tensor in self.tensors.items()},
            **self.normalizer.state_dict(),
            "generator": self.generator.get_state().numpy().copy(),
            "n_updates": np.array(self.n_updates, np.int64),
        }

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take a `state_dict` back. Raises FileError, naming the difference, before anything is changed."""
        _check_same_form(state, self.state_dict())
        try:
            self.generator.set_state(torch.from_numpy(np.array(state["generator"])))
        except RuntimeError as problem:
            raise FileError(f"the state of the random generator is damaged ({problem})") from None
        for name, tensor in self.tensors.items():
            tensor.copy_(torch.from_numpy(np.array(state[name])))
        self.normalizer.load_state_dict(state)
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

"""A trained agent as one file: weights, normalizer and the description of its task. Reading it needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..agents import Agent
from ..agents.policy import PolicySpec, PolicyWeights
from ..errors import FileError, OptionError
from ..options import FUNCTION, STRUCTURE, Settings
from ..records import Array, GoalSpec
from ..storage import load_arrays, save_arrays
from .run_state import Counts

POLICY_KIND = "policy"
BEST_FIRST = ("best", "latest")  # names of policies in a run folder


@dataclass(frozen=True, eq=False, repr=False)
class SavedModel:
    """The content of a policy file.

    settings, spec, weights: what acting needs.
    agent_state: what further training needs, apart from the replay buffer.
    facts: where in the run it was taken (env_steps, success_rate, ...).
    """

    settings: Settings
    spec: GoalSpec
    weights: PolicyWeights
    agent_state: Mapping[str, Array]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        steps = self.facts.get("env_steps", 0)
        return f"SavedModel({self.settings.agent} for {self.spec.env_id or 'no id'}, after {steps:,} steps)"

    @property
    def found_nothing_yet(self) -> bool:
        """Whether its run was still looking for the structure of its task."""
        settings = self.settings
        found = any(settings.flat().get(name) for name in STRUCTURE if name not in settings.declared)
        return settings.training.structure == "inferred" and not found and not self.facts.get("updates")

    @cached_property
    def policy(self) -> PolicySpec:
        """Return what acting needs to know besides the weights."""
        return PolicySpec(self.spec, self.settings.agent_options)

    @classmethod
    def take(cls, agent: Agent, settings: Settings, spec: GoalSpec, facts: Mapping[str, Any]) -> SavedModel:
        """Return a copy of an agent as it is now."""
        return cls(settings, spec, agent.policy_weights(), agent.state_dict(), facts)

    def write(self, path_or_file: str | Path | BinaryIO) -> None:
        """Write a policy file, atomically, or to an open binary file."""
        arrays = {f"policy/{name}": array for name, array in asdict(self.weights).items()}
        arrays |= {f"agent/{name}": array for name, array in self.agent_state.items()}
        data = {
            "settings": self.settings.to_json(),
            "spec": self.spec.to_json(),
            "facts": dict(self.facts),
        }
        save_arrays(path_or_file, POLICY_KIND, arrays, data)

    @classmethod
    def read(cls, path_or_file: str | Path | BinaryIO) -> SavedModel:
        """Return the model in a policy file, in an open binary file, or the best (else the latest) of a run folder.

        Raises FileError for what is missing, damaged, foreign or newer.
        """
        if isinstance(path_or_file, str | Path):
            path_or_file = _find(Path(path_or_file))
        arrays, data = load_arrays(path_or_file, POLICY_KIND)
        try:
            saved = cls(
                Settings.from_json(data["settings"]),
                GoalSpec.from_json(data["spec"]),
                PolicyWeights(**{k[7:]: v for k, v in arrays.items() if k.startswith("policy/")}),
                {k[6:]: v for k, v in arrays.items() if k.startswith("agent/")},
                dict(data["facts"]),
            )
            saved.policy.check(saved.weights)
            Counts.from_facts(saved.facts)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as problem:
            raise FileError(f"{path_or_file} is malformed ({problem}): it is damaged, or not ours") from None
        if not all(np.isfinite(array).all() for array in asdict(saved.weights).values()):
            raise FileError(f"{path_or_file} holds weights that are NaN or infinite: take another policy of the run")
        return saved


def _find(path: Path) -> Path:
    candidates = [path, *(path / "policies" / f"{name}.safetensors" for name in BEST_FIRST)]
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None:
        if not path.exists():
            raise FileError(f"{path} does not exist. Name a run folder or a policy file")
        runs = sorted({str(place.parent.parent) for place in path.rglob("policies/*.safetensors")})
        below = f". It contains these run folders: {', '.join(runs[:10])}" if runs else ""
        raise FileError(f"{path} is neither a policy file nor a run folder with a policy in it{below}")
    return found


def refuse_other_settings(found: Mapping[str, Any], wanted: Mapping[str, Any], free: frozenset[str]) -> None:
    """Raise OptionError, naming every option in which two settings (as JSON) differ, apart from those in `free`."""
    pairs = {"agent": (found.get("agent"), wanted["agent"])}
    pairs |= {name: (found["options"].get(name), value) for name, value in wanted["options"].items() if name not in free}
    pairs = {name: values for name, values in pairs.items() if values[0] != values[1]}
    differences = [f"{name} was {before!r} and is now {now!r}" for name, (before, now) in pairs.items()]
    if differences:
        functions = [name for name, (before, _) in pairs.items() if str(before).startswith(FUNCTION)]
        hint = f". No file holds a function: give the option {functions[0]} again, in Python" if functions else ""
        raise OptionError(f"a run goes on with the settings that it began with, but {'; '.join(differences)}{hint}")

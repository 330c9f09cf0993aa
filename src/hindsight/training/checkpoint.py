"""A trained agent as one safetensors file: weights, normaliser, the description of its task. Reading needs no torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.numpy

from ..agents import Agent
from ..agents.policy import Policy, PolicySpec, PolicyWeights
from ..errors import FileError, OptionError
from ..options import Settings
from ..records import Array, GoalSpec
from ..storage import parse_json

FORMAT = 1
_LARGEST_HEADER = 16 << 20


@dataclass(frozen=True, eq=False)
class SavedModel:
    """What a policy file holds.

    policy, weights: all that acting needs. agent_state: all that learning on needs, but the replay buffer. facts: where in
    the run it was taken (env_steps, success_rate, ...).
    """

    settings: Settings
    spec: GoalSpec
    policy: PolicySpec
    weights: PolicyWeights
    agent_state: Mapping[str, Array]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def take(cls, agent: Agent, settings: Settings, spec: GoalSpec, facts: Mapping[str, Any]) -> SavedModel:
        """What a file holds of an agent as it stands."""
        return cls(settings, spec, agent.policy_spec, agent.policy_weights(), agent.state_dict(), facts)

    def to_bytes(self) -> bytes:
        """The file's content."""
        arrays = {f"policy/{k}": v for k, v in asdict(self.weights).items()}
        arrays |= {f"agent/{k}": v for k, v in self.agent_state.items()}
        header: dict[str, Any] = {
            "format": FORMAT,
            "settings": self.settings.to_json(),
            "spec": self.spec.to_json(),
            "policy": self.policy.to_json(),
            "facts": dict(self.facts),
        }
        header["sha256"] = _digest(json.loads(json.dumps(header)), arrays)
        return safetensors.numpy.save(arrays, metadata={"hindsight": json.dumps(header, allow_nan=False)})

    @classmethod
    def from_bytes(cls, content: bytes, place: str, **overrides: Any) -> SavedModel:
        """The inverse of `to_bytes`, with options overridden. Raises FileError for what is damaged, foreign or newer."""
        header = _read_header(content, place)
        try:
            arrays = safetensors.numpy.load(content)
        except (safetensors.SafetensorError, ValueError, KeyError) as problem:
            raise FileError(f"{place} is damaged: {problem}") from None
        if header.get("format") != FORMAT:
            raise FileError(f"{place} is of format {header.get('format')!r}, but this version of hindsight reads {FORMAT}")
        if header.pop("sha256", None) != _digest(header, arrays):
            raise FileError(f"{place} is damaged: its SHA-256 is not the one that was written")
        try:
            saved = cls(
                Settings.from_json(header["settings"]),
                GoalSpec.from_json(header["spec"]),
                PolicySpec.from_json(header["policy"]),
                PolicyWeights(**{k[7:]: v for k, v in arrays.items() if k.startswith("policy/")}),
                {k[6:]: v for k, v in arrays.items() if k.startswith("agent/")},
                dict(header["facts"]),
            )
            Policy(saved.policy).load(saved.weights)
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
        ) as problem:  # our own errors are ValueErrors too
            raise FileError(f"{place} is malformed ({problem}): it is damaged, or not ours") from None
        return replace(saved, settings=Settings.from_json(header["settings"], **overrides))

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> SavedModel:
        """The model in a policy file, or the best one (else the latest) of a run folder."""
        candidates = [path, *(path / "policies" / f"{name}.safetensors" for name in ("best", "latest"))]
        found = next((c for c in candidates if c.is_file()), None)
        if found is None:
            raise FileError(f"{path} is neither a policy file nor a run folder with a policy in it")
        return cls.from_bytes(found.read_bytes(), str(found), **overrides)


def _digest(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + b"\0" + arrays[name].tobytes())
    return digest.hexdigest()


def _read_header(content: bytes, place: str) -> dict[str, Any]:
    """Our part of a safetensors header: its length in 8 bytes, then JSON."""
    length = int.from_bytes(content[:8], "little")
    if not 2 <= length <= min(len(content) - 8, _LARGEST_HEADER):
        raise FileError(f"{place} is not a policy file: it is truncated, or something else")
    outer = parse_json(content[8 : 8 + length], place)
    text = outer.get("__metadata__", {}).get("hindsight") if isinstance(outer, dict) else None
    if not isinstance(text, str):
        raise FileError(f"{place} holds arrays, but not a policy of ours")
    header = parse_json(text, place)
    if not isinstance(header, dict):
        raise FileError(f"{place} is malformed: its description is a {type(header).__name__}")
    return header


def refuse_other_settings(found: Mapping[str, Any], wanted: Mapping[str, Any], free: frozenset[str]) -> None:
    """Raise OptionError naming every option in which two settings (as JSON) differ, but for those in `free`."""
    pairs = {"agent": (found.get("agent"), wanted["agent"])}
    pairs |= {k: (found["options"].get(k), v) for k, v in wanted["options"].items() if k not in free}
    differences = [f"{k} was {was!r} and is now {now!r}" for k, (was, now) in pairs.items() if was != now]
    if differences:
        raise OptionError(f"the run cannot go on with other settings: {'; '.join(differences)}. Start a new run for these")

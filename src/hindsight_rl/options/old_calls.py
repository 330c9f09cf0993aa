"""Calls of older libraries: HER(policy, env, model_class, ...) of Stable-Baselines 2 and 3 before version 1.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import OptionError
from .agent import AGENT_OPTIONS
from .other_names import new_names
from .settings import run_options


def refuse_old_call(first: Any, second: Any, third: Any, options: Mapping[str, Any]) -> None:
    """Raise OptionError, with the new call to paste, for HER(policy, env, model_class, ...) and HER(env, model_class).

    first, second, third: the arguments without names.
    """
    model_class = next((each for each in (options.get("model_class"), third, second) if isinstance(each, type)), None)
    is_policy = isinstance(first, str) and first.endswith("Policy")
    if model_class is None and not is_policy:
        return
    agent = str(getattr(model_class, "__name__", "")).lower()
    known = run_options(agent if agent in AGENT_OPTIONS else "td3")
    given = {name: value for name, value in options.items() if name != "model_class"}
    translated = [_translated(name, value) for name, value in given.items()]
    written = [f"{name}={value!r}" for name, value in translated if name in known]
    left = [name for name, (new, _) in zip(given, translated, strict=True) if new not in known]
    call = ", ".join(["env", *([f"agent={agent!r}"] if agent in AGENT_OPTIONS else []), *written])
    rest = f" Without an equivalent: {', '.join(left)}." if left else ""
    raise OptionError(f"This is a call of Stable-Baselines. Write HER({call}).{rest} See docs/migrating.md.")


def _translated(name: str, value: Any) -> tuple[str, Any]:
    """Return an option of Stable-Baselines by our name and with our value."""
    if name == "online_sampling":
        return "relabel_at", "sample" if value else "episode_end"
    if name == "policy_kwargs" and isinstance(value, Mapping) and "net_arch" in value:
        return "hidden", tuple(value["net_arch"])
    if name == "gradient_steps":
        return "updates_per_step", value
    new = new_names().get(name, name)
    return new, str(getattr(value, "name", value)).lower() if new == "strategy" else value

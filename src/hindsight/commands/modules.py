"""Modules that register environments, such as `dock` of "dock:Dock-v0". They are code: nothing imports them unasked."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium

from ..errors import OptionError
from ..training.saved_model import SavedModel


def find_modules_here(environment: str | None) -> None:
    """Let Python find the module of an id such as "dock:Dock-v0" in the current folder, as `python -m` does."""
    if environment and ":" in environment and "" not in sys.path:
        sys.path.insert(0, "")


def environment_of(run: Path, env: str | None, trusts_module: bool) -> str | None:
    """Return the id of the environment of a run, with its module; None: the registered id that the policy names.

    env: the id that the user gives.
    trusts_module: import the module that the run names.
    Raises OptionError if that module is needed and not trusted.
    """
    saved = SavedModel.read(run)
    module, name = saved.settings.rollout.env_module, saved.spec.env_id
    if env is None and module is not None and name not in gymnasium.registry:
        if not trusts_module:
            raise OptionError(
                f"The environment {name} is registered by the module `{module}`. Importing it runs its code. If you trust "
                f"it, add --trust-module. Or give --env {module}:{name}."
            )
        env = f"{module}:{name}"
    find_modules_here(env)
    return env

"""Rendering on machines with and without a display."""

from __future__ import annotations

import os
import sys

from ..errors import GoalEnvError, MissingExtraError
from .random_play import Environment, name_of, random_state_kept

APT_GL = "apt-get install -y libegl1 libgl1-mesa-dri"


def has_display() -> bool:
    """Return whether a window can be opened."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def prepare_rendering(render_mode: str | None) -> None:
    """Select EGL if there is no display and MUJOCO_GL is not set. Call it before a simulator is imported.

    Raises GoalEnvError for render_mode="human" without a display.
    """
    if render_mode is None or has_display():
        return
    if render_mode == "human":
        raise GoalEnvError("render_mode='human' needs a display, and there is none. Use render_mode='rgb_array'.")
    os.environ.setdefault("MUJOCO_GL", "egl")


def render_once(env: Environment) -> None:
    """Reset the environment and render one frame. Raises MissingExtraError or GoalEnvError if that fails."""
    with random_state_kept(env):
        try:
            env.reset(seed=0)
            if env.render() is None:
                raise GoalEnvError("render() returned None")
        except Exception as problem:
            message = f"{name_of(env)} cannot be rendered ({type(problem).__name__}: {problem})."
            if "mujoco" in sys.modules:
                raise MissingExtraError(f"{message} Try: {APT_GL}") from problem
            raise GoalEnvError(message) from problem

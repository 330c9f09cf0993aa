"""Rendering with and without a display. No simulator is needed here."""

import os
import sys

import numpy as np
import pytest
from line_env import Line

from hindsight_rl.envs.goal_env import make_goal_env, prepare_rendering
from hindsight_rl.errors import GoalEnvError, MissingExtraError


@pytest.mark.parametrize(
    ("display", "chosen", "render_mode", "expected"),
    [
        (None, None, "rgb_array", "egl"),
        (None, "osmesa", "rgb_array", "osmesa"),
        (":0", None, "rgb_array", None),
        (None, None, None, None),
    ],
)
def test_egl_is_selected_without_a_display(monkeypatch, display, chosen, render_mode, expected):
    monkeypatch.setattr("sys.platform", "linux")
    for name, value in {"DISPLAY": display, "MUJOCO_GL": chosen, "WAYLAND_DISPLAY": None}.items():
        monkeypatch.setenv(name, value or "")
        if value is None:
            monkeypatch.delenv(name)
    prepare_rendering(render_mode)
    assert os.environ.get("MUJOCO_GL") == expected


def test_a_window_without_a_display_is_an_error(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(GoalEnvError, match="rgb_array"):
        prepare_rendering("human")


class Blind(Line):
    def render(self):
        raise RuntimeError("no OpenGL")


def test_an_environment_that_cannot_be_rendered_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.delitem(sys.modules, "mujoco")
    with pytest.raises(GoalEnvError, match=r"Blind cannot be rendered .*no OpenGL"):
        make_goal_env(Blind, "rgb_array")
    with pytest.raises(GoalEnvError, match=r"cannot be rendered .*returned None"):
        make_goal_env(type("Empty", (Line,), {"render": lambda self: None}), "rgb_array")
    monkeypatch.setitem(sys.modules, "mujoco", sys)
    with pytest.raises(MissingExtraError, match="apt-get install -y libegl1 libgl1-mesa-dri"):
        make_goal_env(Blind, "rgb_array")


def test_rendering_once_keeps_the_random_state():
    env, other = Line(render_mode="rgb_array"), Line()
    env.reset(seed=3)
    other.reset(seed=3)
    make_goal_env(env, "rgb_array")
    assert np.array_equal(env.reset()[0]["observation"], other.reset()[0]["observation"])

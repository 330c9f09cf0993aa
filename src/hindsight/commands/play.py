"""`hindsight play`: show what a policy does, in a window or as a video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ..envs.goal_env import make_goal_env
from ..envs.rendering import has_display
from ..her import HER
from ..report.write import LiveReport
from ..rollout.video import VideoFile, play_with_video
from ..training.assemble import environment_id
from ..training.evaluate import Evaluation, outcome_of
from .train import find_modules_here


def play(run: Path, env: str | None, episodes: int, seed: int, video_path: Path | None) -> int:
    """Play episodes, print the outcome of each and the statistics of all, and return the exit status.

    env: the id of the environment, where it does not register itself.
    seed: of the episodes.
    video_path: the file to write; without it a window, or else a .gif beside the policy.
    """
    find_modules_here(env)
    with HER.load(run, env) as model:
        name, env_arguments = env or environment_id(model.spec), model.settings.rollout.env_arguments
        in_window = video_path is None and has_display() and "human" in _render_modes(name, env_arguments)
        with closing(make_goal_env(name, "human" if in_window else "rgb_array", env_arguments)) as environment:
            beside = run / "play.gif" if run.is_dir() else run.with_suffix(".gif")
            video = None if in_window else VideoFile(video_path or beside, environment)
            results = []
            for number in range(episodes):
                limit = model.settings.rollout.max_episode_steps
                results.append(outcome_of(*play_with_video(environment, model.policy, seed, number, limit, video)))
                print(f"episode {number}: {results[-1]}")
    print(Evaluation(tuple(results)))
    if video:
        video.close()
        print(f"video: {video.path}")
        _show_in_report(run, video.path)
    return 0


def _show_in_report(run: Path, video: Path) -> None:
    """Write the report of a run again if the video lies in its folder: the page shows it."""
    if run.is_dir() and video.resolve().parent == run.resolve() and (page := LiveReport(run).finish()):
        print(f"report: {page}")


def _render_modes(environment: str, env_arguments: Mapping[str, Any]) -> Sequence[str]:
    with closing(make_goal_env(environment, env_options=env_arguments)) as env:
        return list(env.metadata.get("render_modes") or ())

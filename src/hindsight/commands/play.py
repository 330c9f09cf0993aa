"""`hindsight play`: show what a policy does, in a window or as a video."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from ..envs.goal_env import make_goal_env
from ..envs.rendering import has_display
from ..her import HER
from ..report.write import LiveReport
from ..rollout.video import VideoFile, play_with_video
from ..training.assemble import environment_id
from ..training.evaluate import Evaluation, outcome_of
from .terminal import progress, say


def play(run: Path, env: str | None, *, episodes: int, seed: int, video_path: Path | None) -> None:
    """Play episodes, and print the outcome of each and the statistics of all.

    env: the id of the environment, None for the run's own.
    seed: of the episodes.
    video_path: the file to write. Without it a window, or else a .gif beside the policy.
    """
    with HER.load(run, env) as model:
        name = env or environment_id(model.spec)
        rollout = model.settings.rollout
        mode = _render_mode(name, rollout.env_arguments, in_window=video_path is None and has_display())
        with closing(make_goal_env(name, mode, rollout.env_arguments)) as environment:
            beside = run / "play.gif" if run.is_dir() else run.with_suffix(".gif")
            video = VideoFile(video_path or beside, environment) if mode == "rgb_array" else None
            results = []
            for number in progress(range(episodes), episodes, "episodes"):
                limit = rollout.max_episode_steps
                results.append(outcome_of(*play_with_video(environment, model.policy, seed, number, limit, video)))
                say(f"episode {number}: {results[-1]}")
    say(str(Evaluation(tuple(results))))
    if video:
        video.close()
        say(f"video: {video.path}")
        _show_in_report(run, video.path)


def _render_mode(environment: str, env_arguments: dict[str, object], in_window: bool) -> str | None:
    """Return how the environment is shown: "human" in a window, "rgb_array" for a video, None if it cannot be rendered."""
    with closing(make_goal_env(environment, env_options=env_arguments)) as env:
        modes = list(env.metadata.get("render_modes") or ())
    if in_window and "human" in modes:
        return "human"
    if "rgb_array" in modes:
        return "rgb_array"
    say(f"{environment} cannot be rendered: its metadata has render_modes {modes}. It is played without pictures.")
    return None


def _show_in_report(run: Path, video: Path) -> None:
    """Write the report of a run again if the video lies in its folder: the page shows it."""
    if run.is_dir() and video.resolve().parent == run.resolve() and (page := LiveReport(run).finish()):
        say(f"report: {page}")

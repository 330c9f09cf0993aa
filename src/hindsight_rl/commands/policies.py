"""What is done with a saved policy: `hindsight-rl evaluate` and `hindsight-rl play`, and the module of its environment."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import gymnasium

from ..envs.goal_env import has_display, make_goal_env
from ..errors import OptionError
from ..her import HER
from ..report.run import environment_name
from ..rollout.video import VideoFile, play_with_video
from ..training.assemble import environment_id
from ..training.evaluate import Evaluation, evaluate, outcome_of
from ..training.saved_model import SavedModel
from .lines import say
from .modules import find_modules_here
from .terminal import progress


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


def evaluate_run(
    run: Path, env: str | None, *, episodes: int, seed: int, workers: int | Literal["auto"]
) -> tuple[dict[str, object], Evaluation]:
    """Evaluate a policy, show how far it is on stderr, and return facts about the policy and the evaluation.

    env: the id of the environment, None for the run's own.
    """
    with HER.load(run, env, workers=workers, engine="processes", ray_address=None) as model:
        outcomes = progress(evaluate(model.source, model.weights, seed, range(episodes)), episodes, "episodes")
        result = Evaluation(tuple(outcomes))
        name = environment_name(model.spec.env_id, model.settings.rollout.env_options)
        return {"environment": name, "agent": model.settings.agent, "seed": seed}, result


def play(run: Path, env: str | None, *, episodes: int, seed: int, video_path: Path | None) -> None:
    """Play episodes, and print the outcome of each and the statistics of all.

    env: the id of the environment, None for the run's own.
    seed: of the episodes.
    video_path: the file to write. Without it a window, or else a .gif beside the policy.
    """
    with HER.load(run, env) as model:
        name = env or environment_id(model.spec)
        rollout = model.settings.rollout
        arguments = rollout.env_arguments, rollout.observation_keys
        mode = _render_mode(name, rollout.env_arguments, in_window=video_path is None and has_display())
        with closing(make_goal_env(name, mode, *arguments, model.settings.replay.reward)) as environment:
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


def _render_mode(environment: str, env_arguments: Mapping[str, Any], in_window: bool) -> str | None:
    """Return how the environment is shown: "human" in a window, "rgb_array" for a video, None if it cannot be rendered."""
    with closing(make_goal_env(environment, env_options=env_arguments)) as env:
        modes = list(env.metadata.get("render_modes") or ())
        has_render = type(env.unwrapped).render is not gymnasium.Env.render
    if in_window and "human" in modes:
        return "human"
    if "rgb_array" in modes and has_render:
        return "rgb_array"
    reason = f"its metadata has render_modes {modes}" if has_render else "its render() is not written"
    say(f"{environment} cannot be rendered: {reason}. It is played without pictures.")
    return None


def _show_in_report(run: Path, video: Path) -> None:
    """Write the report of a run again if the video lies in its folder: the page shows it."""
    from ..report.write import LiveReport

    if run.is_dir() and video.resolve().parent == run.resolve() and (page := LiveReport(run).finish()):
        say(f"report: {page}")

"""What is done with a saved policy: `hindsight-rl evaluate` and `hindsight-rl play`, and the module of its environment."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium

from ..envs.goal_env import has_display, make_goal_env
from ..errors import OptionError
from ..her import HER
from ..report.run import environment_name
from ..rollout.video import VideoFile, play_with_video
from ..training.assemble import environment_id
from ..training.evaluate import Evaluation, outcome_of
from ..training.evaluate import evaluate as evaluate_policy
from ..training.saved_model import SavedModel
from .tasks import find_modules_here
from .terminal import progress, say


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


def evaluate(arguments: Namespace) -> None:
    """Measure a policy, and print the statistics as a sentence or as JSON."""
    env, seed, count = _environment(arguments), arguments.seed, arguments.episodes
    with HER.load(arguments.run, env, workers=arguments.workers, engine="processes", ray_address=None) as model:
        outcomes = progress(evaluate_policy(model.source, model.weights, seed, range(count)), count, "episodes")
        result = Evaluation(tuple(outcomes))
        name = environment_name(model.spec.env_id, model.settings.rollout.env_options)
        facts = {"environment": name, "agent": model.settings.agent, "seed": seed}
    if arguments.json:
        print(json.dumps(facts | result.to_json()))
    else:
        say(f"{name}: {result}")


def play(arguments: Namespace) -> None:
    """Show what a policy does: in a window, or else as a video. Print each outcome, and the statistics of all."""
    run, env = arguments.run, _environment(arguments)
    with HER.load(run, env) as model:
        name, rollout = env or environment_id(model.spec), model.settings.rollout
        mode = _render_mode(name, rollout.env_arguments, in_window=arguments.video is None and has_display())
        options = rollout.env_arguments, rollout.observation_keys, model.settings.replay.reward
        with closing(make_goal_env(name, mode, *options)) as environment:
            beside = run / "play.gif" if run.is_dir() else run.with_suffix(".gif")
            video = VideoFile(arguments.video or beside, environment) if mode == "rgb_array" else None
            results = []
            for number in progress(range(arguments.episodes), arguments.episodes, "episodes"):
                limit = rollout.max_episode_steps
                played = play_with_video(environment, model.policy, arguments.seed, number, limit, video)
                results.append(outcome_of(*played))
                say(f"episode {number}: {results[-1]}")
    say(str(Evaluation(tuple(results))))
    if video:
        video.close()
        say(f"video: {video.path}")
        _show_in_report(run, video.path)


def _environment(arguments: Namespace) -> str | None:
    return environment_of(arguments.run, arguments.env, arguments.trust_module)


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

"""What is done with a saved policy: `evaluate`, `play` and `record`; and the module of its environment."""

from __future__ import annotations

import importlib
import json
import shlex
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from ..agents.policy import Policy
from ..envs.goal_env import has_display, make_goal_env, read_spec
from ..envs.minari_data import check_new, write_episodes
from ..envs.random_play import Environment
from ..envs.wrappers import DiscreteActions
from ..errors import FileError, HindsightError, InputError, OptionError
from ..her import HER
from ..recipes import choose_recipe
from ..records import Array
from ..report.run import environment_name
from ..rollout.collect import Observation, PolicyActor, play_episode
from ..rollout.video import VideoFile, play_with_video
from ..seeds import RECORDING, environment_seed
from ..training.assemble import environment_id
from ..training.evaluate import Evaluation, outcome_of
from ..training.evaluate import evaluate as evaluate_policy
from ..training.saved_model import SavedModel
from .arguments import option_words
from .tasks import find_modules_here
from .terminal import progress, say, say_command


def environment_of(saved: SavedModel, env: str | None, trusts_module: bool) -> str | None:
    """Return the id of the environment of a policy, with its module; None: the registered id that the policy names.

    env: the id that the user gives.
    trusts_module: import the module that the run names.
    Raises OptionError if that module is needed and not trusted.
    """
    module, name = saved.settings.rollout.env_module, saved.spec.env_id
    if env is None and module is not None and name not in gymnasium.registry:
        if not trusts_module:
            raise OptionError(
                f"The environment {name} is registered by the module `{module}`. Importing it runs its code. If you trust "
                f"it, add --trust-module. Or give --env {with_module(module, name)}."
            )
        env = with_module(module, name)
    find_modules_here(env)
    return env


def with_module(module: str | None, name: str | None) -> str:
    """Return the id of an environment as a command takes it: after the module that registers it, if it has one."""
    return f"{module}:{name}" if module else str(name)


def made_environment(saved: SavedModel, env: str | None, trusts_module: bool) -> Environment:
    """Return the environment of a policy. env, trusts_module: see `environment_of`. Raises FileError if it does not fit."""
    name, rollout = environment_of(saved, env, trusts_module) or environment_id(saved.spec), saved.settings.rollout
    environment = make_goal_env(name, None, rollout.env_arguments, rollout.observation_keys)
    if difference := saved.spec.difference(read_spec(environment)):
        raise FileError(f"The policy does not fit the environment: {difference}.")
    return environment


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
    return environment_of(SavedModel.read(arguments.run), arguments.env, arguments.trust_module)


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


class Player(NamedTuple):
    """What plays the episodes.

    author: what chooses the actions, in words.
    name: of the environment, with the module that registers it.
    limit: steps per episode at most; None leaves the limit to the environment.
    options: of `train`, with which the environment is the same.
    """

    environment: Environment
    name: str
    act: Callable[[Observation], Array]
    author: str
    limit: int | None
    info_keys: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]


def record(arguments: Namespace) -> None:
    """Play episodes, write them as a data set, and print what it is. Raises what `write_episodes` raises."""
    player, name, count = _player(arguments), arguments.output, arguments.episodes
    check_new(name, player.environment)
    with closing(player.environment):
        episodes = []
        for number in progress(range(count), count, "episodes"):
            start = environment_seed(arguments.seed, RECORDING, number)
            episodes.append(play_episode(player.environment, player.act, start, number, player.limit, player.info_keys))
        write_episodes(name, player.environment, episodes, player.author)
    say(f"data set: {name}, {len(episodes)} episodes, {sum(bool(each.success) for each in episodes)} of them successful")
    words = [word for option, value in player.options.items() if value for word in option_words(option, value)]
    say_command(shlex.join(["train", player.name, "--demonstrations", name, *words]))


def _player(arguments: Namespace) -> Player:
    """Return the player for a policy, or for a function that is written as module:function."""
    source, env = arguments.source, arguments.env
    if ":" not in source or Path(source).exists():
        return policy_player(Path(source), env, arguments.trust_module)
    if env is None:
        raise OptionError(f"{source} does not name its environment. Give --env ENV.")
    find_modules_here(env)
    return script_player(source, env, vars(arguments))


def policy_player(run: Path, env: str | None, trusts_module: bool) -> Player:
    """Return a player for the policy of a run. env, trusts_module: see `environment_of`."""
    saved = SavedModel.read(run)
    environment, settings, policy = made_environment(saved, env, trusts_module), saved.settings, Policy(saved.policy)
    policy.load(saved.weights)
    rollout, keys = settings.rollout, settings.replay.info_keys
    name = env or with_module(rollout.env_module, saved.spec.env_id)
    author, limit = f"hindsight-rl {settings.agent}", rollout.max_episode_steps
    options = {"env_options": rollout.env_options, "observation_keys": rollout.observation_keys}
    return Player(environment, name, PolicyActor(policy), author, limit, keys, options)


def script_player(script: str, env: str, given: Mapping[str, Any]) -> Player:
    """Return a player for a function observation -> action.

    script: "module:function"; the module is imported, from the current folder too.
    env: the id of the environment. given: the command line, with `env_options` and `info_keys`.
    Raises OptionError if there is no such function.
    """
    function = _find(script)
    environment = make_goal_env(env, None, choose_recipe(None, env).environment_arguments(given))
    numbered = environment if isinstance(environment, DiscreteActions) else None
    space: Any = numbered.env.action_space if numbered else environment.action_space

    def act(observation: Observation) -> Array:
        try:
            action = np.asarray(function(observation), space.dtype)
        except Exception as problem:
            raise HindsightError(f"{script} failed ({type(problem).__name__}: {problem}).") from problem
        if not space.contains(action):
            raise InputError(f"An action of {script} must be in {space}, got {action}. Clip it, and check its shape.")
        return np.asarray(numbered.number(action)) if numbered else action

    options = {"env_options": tuple(given.get("env_options", ()))}
    return Player(environment, env, act, script, None, tuple(given["info_keys"]), options)


def _find(script: str) -> Callable[[Observation], Any]:
    module_name, _, name = script.partition(":")
    find_modules_here(script)
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ModuleNotFoundError as problem:
        raise OptionError(f"{script!r} cannot be imported: {problem}. Run where {module_name}.py can be found.") from None
    if not callable(found):
        raise OptionError(f"The module {module_name!r} has no function {name!r}. Write MODULE:FUNCTION.")
    return found  # type: ignore[no-any-return]

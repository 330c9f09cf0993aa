"""`hindsight-rl record`: play episodes with a policy or a function, and write them as a Minari data set."""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..agents.policy import Policy
from ..envs.goal_env import make_goal_env, read_spec
from ..envs.minari_data import check_new, write_episodes
from ..envs.random_play import Environment, name_of
from ..errors import FileError, HindsightError, InputError, OptionError
from ..recipes import choose_recipe
from ..records import Array, Episode
from ..rollout.collect import Observation, PolicyActor, play_episode
from ..seeds import RECORDING, environment_seed
from ..training.assemble import environment_id
from ..training.saved_model import SavedModel
from .policies import environment_of
from .tasks import find_modules_here
from .terminal import progress, say, say_command


def record(arguments: Namespace) -> None:
    """Record what the arguments say, and print what it is."""
    source, env, name = arguments.source, arguments.env, arguments.output
    if ":" not in source or Path(source).exists():
        player = policy_player(Path(source), env, arguments.trust_module)
    elif env is None:
        raise OptionError(f"{source} does not name its environment. Give --env ENV.")
    else:
        find_modules_here(env)
        options = choose_recipe(None, env).environment_arguments(vars(arguments))
        player = script_player(source, env, options, tuple(arguments.info_keys))
    episodes = record_episodes(player, name, arguments.episodes, arguments.seed)
    say(f"data set: {name}, {len(episodes)} episodes, {sum(bool(each.success) for each in episodes)} of them successful")
    say_command(f"train {env or name_of(player.environment)} --demonstrations {name}")


class Player(NamedTuple):
    """What plays the episodes.

    author: what chooses the actions, in words.
    limit: steps per episode at most; None leaves the limit to the environment.
    """

    environment: Environment
    act: Callable[[Observation], Array]
    author: str
    limit: int | None
    info_keys: tuple[str, ...]


def record_episodes(player: Player, name: str, episodes: int, seed: int) -> list[Episode]:
    """Play episodes, write them as the data set `name`, and return them. Raises what `write_episodes` raises."""
    check_new(name, player.environment)
    with closing(player.environment):
        played = []
        for number in progress(range(episodes), episodes, "episodes"):
            start = environment_seed(seed, RECORDING, number)
            played.append(play_episode(player.environment, player.act, start, number, player.limit, player.info_keys))
        write_episodes(name, player.environment, played, player.author)
    return played


def policy_player(run: Path, env: str | None, trusts_module: bool) -> Player:
    """Return a player for the policy of a run. env, trusts_module: see `environment_of`."""
    env, saved = environment_of(run, env, trusts_module), SavedModel.read(run)
    rollout, policy = saved.settings.rollout, Policy(saved.policy)
    policy.load(saved.weights)
    arguments = rollout.env_arguments, rollout.observation_keys
    environment = make_goal_env(env or environment_id(saved.spec), None, *arguments)
    if difference := saved.spec.difference(read_spec(environment)):
        raise FileError(f"The policy does not fit the environment: {difference}.")
    author = f"hindsight-rl-rl {saved.settings.agent}"
    return Player(environment, PolicyActor(policy), author, rollout.max_episode_steps, saved.settings.replay.info_keys)


def script_player(script: str, env: str, options: Mapping[str, Any], info_keys: tuple[str, ...]) -> Player:
    """Return a player for a function observation -> action.

    script: "module:function"; the module is imported, from the current folder too.
    env, options: id and keyword arguments of the environment.
    Raises OptionError if there is no such function.
    """
    function = _find(script)
    environment = make_goal_env(env, None, options)
    space: Any = environment.action_space

    def act(observation: Observation) -> Array:
        try:
            action = np.asarray(function(observation), space.dtype)
        except Exception as problem:
            raise HindsightError(f"{script} failed ({type(problem).__name__}: {problem}).") from problem
        if not space.contains(action):
            raise InputError(f"An action of {script} must be in {space}, got {action}. Clip it, and check its shape.")
        return action

    return Player(environment, act, script, None, info_keys)


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

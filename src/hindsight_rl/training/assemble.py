"""Assemble a run: settings are resolved, environments made, and agent, buffer and source made from the settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium
import numpy as np

from ..agents import Agent, make_agent
from ..agents.policy import PolicySpec
from ..envs.check import CheckReport, check_goal_env
from ..envs.goal_env import EnvSource, change_of, close_env, make_goal_env, read_spec, resets_exactly
from ..envs.goal_functions import reward_function, success_function, terminated_function
from ..envs.minari_data import read_episodes
from ..envs.random_play import Environment
from ..envs.wrappers import FlattenGoalEnv, StepCounter
from ..errors import FileError, GoalEnvError, OptionError, needs_extra
from ..options import Settings
from ..recipes import Recipe, choose_recipe, find_recipe, load_recipe
from ..records import Array, Episode, GoalSpec
from ..records.reward_scale import UNIT_RANGE, RewardScale
from ..rollout.collect import RolloutSetup
from ..rollout.episode_sources import EpisodeSource, make_source
from ..seeds import AGENT, DEMONSTRATIONS, REPLAY, stream_seed
from ..structure import is_flat
from .resolve import Found, resolve_settings
from .run_state import Counts, Parts
from .saved_model import SavedModel

if TYPE_CHECKING:  # they import torch and numba, which evaluating does not need
    from ..replay.buffer import HindsightBuffer
    from .demonstrations import Demonstrations
    from .structure_search import StructureSearch
    from .trainer import Trainer

Reading = TypeVar("Reading")


class Assembly:
    """Makes the parts of runs from settings, and owns the environments.

    env: an id, a function that makes environments, or one environment. None: the id in the spec, when it is needed.
    environment: one that was made from `env` already, for training.
    settings: with which the run begins. If it finds others, its state has them (`RunState`); where episodes come from and
        where files go stays.
    resolve: returns the settings of a new run with options that were found during the run.
    check_steps: environment steps that were played before training, to check the environment and to read its task.
    """

    def __init__(
        self,
        env: EnvSource | None,
        environment: Environment | None,
        spec: GoalSpec,
        settings: Settings,
        resolve: Callable[[Found], Settings] | None = None,
    ) -> None:
        rollout = settings.rollout
        if (rollout.engine == "ray" and rollout.workers in (0, "auto")) or (
            rollout.ray_address and rollout.engine != "ray"
        ):
            raise OptionError("ray_address needs engine='ray', and that needs workers, as in --engine ray --workers 2")
        if isinstance(env, gymnasium.Env) and (rollout.workers not in (0, "auto") or rollout.remake_environment):
            raise OptionError("workers and remake_environment make environments: give an id or a function, not an object")
        if rollout.lowest_achieved and len(rollout.lowest_achieved) != spec.goal.size:
            raise OptionError(
                f"`lowest_achieved` must have {spec.goal.size} numbers, as the goal has, got {rollout.lowest_achieved}"
            )
        self.spec, self.settings, self._resolve = spec, settings, resolve
        self._env, self._training = env, environment
        self.check_report: CheckReport | None = None
        self.check_steps = 0
        self._found: dict[Callable[[Environment], Any], Any] = {}

    @property
    def environment(self) -> Environment:
        """The environment for training. It is made at first use, and again after `close`."""
        if self._training is None:
            self._training = self._make()
        return self._training

    def agent(self, settings: Settings, stored: Mapping[str, Array] | None = None) -> Agent:
        """Return a new agent. Raises MissingExtraError if torch is missing. stored: as for `make_agent`."""
        scale = RewardScale.of_task(self.spec)
        # with an extra reward compute_reward, from which the range was read, is not the whole reward
        is_known = scale is not None and not settings.replay.extra_reward
        low, high = UNIT_RANGE if is_known else (-np.inf, np.inf)
        spec = replace(self.spec, reward_low=low, reward_high=high)  # buffers convert rewards
        with needs_extra("train", "training needs torch"):
            agent = make_agent(settings.agent, spec, settings.agent_options, self._seed(AGENT), stored)
        agent.reward_scale = scale
        return agent

    def buffers(self, settings: Settings, policy: PolicySpec) -> tuple[HindsightBuffer, Demonstrations | None]:
        """Return a new buffer, and the demonstrations if the settings name any. policy: names the subgoals.

        Raises what `read_episodes` raises.
        """
        episode_length = self.spec.limited(settings.rollout.max_episode_steps).max_episode_steps
        if episode_length and settings.training.capacity < episode_length:
            raise OptionError(
                f"capacity must be at least the {episode_length} steps of an episode, got {settings.training.capacity}"
            )
        buffer = self._buffer(settings, policy, settings.training.capacity, episode_length, REPLAY)
        name = settings.training.demonstrations
        return buffer, None if name is None else self._demonstrations(name, settings, policy)

    def _demonstrations(self, name: str, settings: Settings, policy: PolicySpec) -> Demonstrations:
        from .demonstrations import Demonstrations
        from .episodes import can_take

        replay = settings.replay.replace(prioritized=False)  # a fixed fraction of each batch needs no priorities
        settings = replace(settings, replay=replay)
        episodes = self._recorded
        steps, shortest = sum(map(len, episodes)), min(map(len, episodes))
        demonstrations = Demonstrations(name, episodes, self._buffer(settings, policy, steps, shortest, DEMONSTRATIONS))
        if other := [episode.number for episode in episodes if not can_take(policy, episode.action)]:
            raise OptionError(
                f"episode {other[0]} of the data set {name!r} has larger actions than action_scale allows. Leave out "
                f"action_scale, or record smaller actions"
            )
        return demonstrations

    @cached_property
    def _recorded(self) -> Sequence[Episode]:
        """The episodes of the data set. They are read once, however often the run is rebuilt."""
        from .demonstrations import warn_of_other_rewards

        name, replay = self.settings.training.demonstrations, self.settings.replay
        assert name is not None, "the options say so"
        episodes = read_episodes(name, self.spec, replay.info_keys)
        if not replay.extra_reward and replay.reward == "step":
            warn_of_other_rewards(name, episodes, self._find(reward_function))
        return episodes

    def _buffer(
        self, settings: Settings, policy: PolicySpec, capacity: int, episode_length: int | None, stream: int
    ) -> HindsightBuffer:
        from ..replay.buffer import HindsightBuffer, compile_kernels

        replay, environment = settings.replay, self.environment
        compile_kernels(bool(replay.symmetries))
        given, scale = settings.training.success_reward, RewardScale.of_task(self.spec)
        least = given if given is not None else scale.success if scale else None
        is_success_rule = replay.relabel_terminated == "success"
        compute_success = self._find(success_function) if is_success_rule and given is None else None
        if is_success_rule and least is None and compute_success is None:
            raise OptionError(
                "relabel_terminated='success' needs a reward of two values, success_reward, or an environment with "
                "compute_success. Choose 'keep' or 'never'"
            )
        return HindsightBuffer(
            capacity,
            environment.observation_space,
            environment.action_space,
            self._find(reward_function),
            seed=self._seed(stream),
            options=replay,
            compute_terminated=self._find(terminated_function),
            compute_success=compute_success,
            success_reward=0.0 if least is None else least,
            episode_length=episode_length,
            discount=settings.agent_options.discount,
            subgoals=policy.subgoals,
        )

    def _find(self, find: Callable[[Environment], Reading]) -> Reading:
        """Return what a function finds by playing the environment. It plays once, and its steps are counted."""
        if find not in self._found:
            counter = StepCounter(self.environment)
            self._found[find] = find(counter)
            self.check_steps += counter.n_steps
        found: Reading = self._found[find]
        return found

    def trainer(self, agent: Agent, source: EpisodeSource, counts: Counts) -> Trainer:
        """Return a trainer with a new buffer. The steps that were played before are added to the counts."""
        from .trainer import Trainer  # it imports torch, which acting does not need

        buffer, demonstrations = self.buffers(self.settings, agent.policy_spec)
        search = self.search()
        counts.check_steps += self.check_steps
        return Trainer(agent, buffer, source, self.settings, counts, demonstrations, search)

    def search(self) -> StructureSearch | None:
        """Return what finds the structure of the task during the run; None if nothing is left to be found."""
        if self._resolve is None or not is_flat(self.spec):
            return None
        if self.spec.action.n_values and self.settings.agent_options.categories:  # paths are planned over states
            return None
        is_open = self.settings.replay.relabel_terminated is None and self._find(terminated_function) is None
        if self.settings.training.structure != "inferred" and not is_open:
            return None
        from ..replay.transforms import with_info
        from .structure_search import StructureSearch

        compute_reward = with_info(self._find(reward_function), self.settings.replay.info_keys)
        spec = self.spec.limited(self.settings.rollout.max_episode_steps)
        return StructureSearch(spec, self.settings, self._resolve, self._build, is_open, compute_reward)

    def _build(self, settings: Settings, agent: Agent | None, stored: Mapping[str, Array] | None) -> Parts:
        """Return the agent, or a new one, and buffers with other settings. stored: the state that a new agent will take."""
        agent = agent or self.agent(settings, stored)
        return agent, *self.buffers(settings, agent.policy_spec)

    def source(self, policy: PolicySpec) -> EpisodeSource:
        """Return a new source of episodes: this process, workers, or both."""
        rollout, given = self.settings.rollout, self._given
        maker = None if isinstance(given, gymnasium.Env) else given
        remakes = rollout.remake_environment
        if remakes is None and maker is not None:  # each episode needs a new environment if a reset does not equal one
            remakes = rollout.reset_mode == "exact" and not self._find(resets_exactly)
        setup = RolloutSetup(
            maker,
            policy,
            rollout.max_episode_steps,
            self.settings.replay.info_keys,
            maker is not None and bool(remakes),
            rollout.env_arguments,
            rollout.observation_keys,
            self.settings.replay.reward,
        )
        return make_source(setup, rollout, lambda: self.environment)

    def close(self) -> None:
        """Close the environments that were made here, but not one that was given."""
        if self._training is not None and not isinstance(self._env, gymnasium.Env):
            close_env(self._training)
            self._training = None
            self._found.clear()

    @property
    def _given(self) -> EnvSource:
        return environment_id(self.spec) if self._env is None else self._env

    def _make(self) -> Environment:
        made = _make_environment(self._given, self.settings)
        counter = StepCounter(made)
        found = read_spec(counter)
        self.check_steps += counter.n_steps
        difference = self.spec.difference(found)
        if not difference and found.max_episode_steps != self.spec.max_episode_steps:
            difference = f"{self.spec.max_episode_steps} steps per episode against {found.max_episode_steps}"
        if difference:
            raise OptionError(
                f"{self._given} differs from the environment of the policy: {difference}. Give the one it was trained in: "
                f"HER.load(path, env=...)"
            )
        return made

    def _seed(self, stream: int) -> int:
        return stream_seed(self.settings.training.seed, stream)


def assemble(
    env: EnvSource, agent: str | None, recipe: str | Path | None, options: Mapping[str, Any], check: bool = True
) -> Assembly:
    """Resolve the settings of a new run on an environment.

    agent: its name; None leaves it to the recipe. recipe: its name or path; None chooses it by the environment's id.
    options: option names and values, above those of the recipe.
    check: play the environment first. Errors raise GoalEnvError. What it finds chooses options that the recipe leaves open.
    Raises UnknownNameError, OptionError and GoalEnvError.
    """
    recipe = str(recipe) if isinstance(recipe, Path) else recipe
    for name, value in (("agent", agent), ("recipe", recipe)):
        if not isinstance(value, str | None):
            raise OptionError(f"{name} must be a name, got {value!r}. Calls of other libraries: docs/migrating.md")
    env_id = env if isinstance(env, str) else None
    chosen = choose_recipe(recipe, env_id) if recipe or env_id else None
    arguments = (chosen or load_recipe("default")).environment_arguments(options)
    known = {**(chosen.options if chosen else {}), **options}
    keys, reward = known.get("observation_keys", ()), known.get("reward", "step")
    make = partial(make_goal_env, env, None, arguments, keys, reward)
    environment, can_remake = make(), not isinstance(env, gymnasium.Env)
    if env_id and ":" in env_id:
        options = {"env_module": env_id.partition(":")[0]} | dict(options)
    with _closed_on_error(environment, env):
        counter = StepCounter(environment)
        spec = read_spec(counter, arguments)
        report = _check(environment, known, make if can_remake else None) if check else None
        if report is not None and report.facts is not None:
            low, high = report.facts.reward_range
            spec = replace(spec, reward_low=low, reward_high=high)
        facts, reuses = report.facts if report else None, known.get("reset_mode") == "reuse"
        checked = facts.choices(can_remake and not reuses) if facts else []
        final = chosen or _recipe_of(environment, spec, arguments)

        def resolve(found: Found) -> Settings:
            return resolve_settings(final, spec, agent, options, found, checked)

        settings = resolve(Found())
        if settings.rollout.observation_keys != tuple(keys):  # the check saw what the observation lacks
            environment = FlattenGoalEnv(environment, settings.rollout.observation_keys)
            whole = GoalSpec.from_spaces(environment.observation_space, environment.action_space)
            spec = replace(spec, observation=whole.observation)
            settings = resolve(Found())
        if settings.rollout.env_arguments != arguments:
            raise OptionError(
                f"the recipe {settings.recipe!r} has env_options {list(settings.rollout.env_options)}, but the environment "
                f"was made with {arguments}. Give them: HER(env, env_options=(...))"
            )
        assembly = Assembly(env, environment, spec, settings, None if final.complete else resolve)
        assembly.check_report = report
        assembly.check_steps = counter.n_steps + (report.n_steps if report else 0)
        return assembly


def _recipe_of(environment: Environment, spec: GoalSpec, env_options: Mapping[str, Any]) -> Recipe:
    """Return the recipe for an environment that was not given by its id.

    If its task may be another than that of the id, it is the default. A warning names the recipe that was not chosen.
    """
    recipe, registered = find_recipe(spec.env_id), environment.unwrapped.spec
    if spec.env_id is None and registered is not None:
        other = find_recipe(registered.id).name
        if other != recipe.name:
            warnings.warn(
                f"{change_of(environment, env_options)} may change the task of {registered.id}, so the recipe is "
                f"{recipe.name!r}. If observations, actions and rewards are the same, give recipe={other!r}.",
                UserWarning,
                stacklevel=4,
            )
    return recipe


def _check(environment: Environment, options: Mapping[str, Any], make: Callable[[], Environment] | None) -> CheckReport:
    """Check an environment with the options that say what it needs. Raises GoalEnvError if there is an error.

    make: returns another one; None: none can be made.
    """
    names = ("max_episode_steps", "info_keys", "reward", "reset_mode")
    report = check_goal_env(environment, **{name: options[name] for name in names if name in options}, make=make)
    if not report.ok:
        raise GoalEnvError(f"{report}\nFix the errors, or skip the check: --no-check, or check=False.")
    return report


def assemble_saved(env: EnvSource | None, saved: SavedModel, options: Mapping[str, Any]) -> Assembly:
    """Go on from a saved model, with its settings, but without the processes of workers="auto".

    options: change some of the settings.
    Raises FileError if the environment does not fit the policy.
    """
    if not isinstance(saved, SavedModel):
        raise OptionError(f"saved must be a SavedModel, got {saved!r}. HER.load reads one from a file.")
    if saved.settings.rollout.workers == "auto":  # processes import the main script: they start only if they are asked for
        options = {"workers": 0} | dict(options)
    if isinstance(env, gymnasium.Env):  # no option changes one that exists, and no other can be made
        options = {"env_options": (), "remake_environment": None} | dict(options)
    if options.get("structure") == "inferred":
        raise OptionError("structure='inferred' needs a new run. A loaded model keeps the structure that it has")
    if saved.found_nothing_yet:
        options = {"structure": "declared" if saved.settings.declared else "none"} | dict(options)
    settings = Settings.from_json(saved.settings.to_json(), **options)
    if env is None:
        return Assembly(None, None, saved.spec, settings)
    environment = _make_environment(env, settings)
    with _closed_on_error(environment, env):
        counter = StepCounter(environment)
        if difference := saved.spec.difference(read_spec(counter)):
            raise FileError(f"the policy does not fit the environment: {difference}")
        assembly = Assembly(env, environment, saved.spec, settings)
        assembly.check_steps = counter.n_steps
        return assembly


@contextmanager
def _closed_on_error(environment: Environment, given: EnvSource) -> Iterator[None]:
    """Close an environment that was made here if the block raises."""
    try:
        yield
    except BaseException:
        if not isinstance(given, gymnasium.Env):
            close_env(environment)
        raise


def _make_environment(env: EnvSource, settings: Settings) -> Environment:
    rollout = settings.rollout
    return make_goal_env(env, None, rollout.env_arguments, rollout.observation_keys, settings.replay.reward)


def environment_id(spec: GoalSpec) -> str:
    """Return the registered id of a task. Raises OptionError if it has none, or one that would import a module."""
    if spec.env_id is None:
        raise OptionError("the environment of this policy has no registered id. Give it: HER.load(path, env=...)")
    if ":" in spec.env_id:  # Gymnasium imports what stands before the colon
        raise OptionError(f"the file names the environment {spec.env_id!r}. Import its module, and give env=...")
    return spec.env_id

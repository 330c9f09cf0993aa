"""HER: learn, predict, evaluate, save, load. The five verbs people know, around the parts."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import gymnasium
import numpy as np

from .agents import Agent, make_agent
from .agents.policy import Exploration, Policy, PolicySpec, PolicyWeights
from .callbacks import Callback, View
from .envs.goal_env import make_goal_env, read_spec, resets_exactly, reward_function, terminated_function
from .errors import FileError, HindsightError, LearnerError, MissingExtraError, MissingKeyError, OptionError, ShapeError
from .options import RolloutOptions, Settings, coerce
from .options.relabel import Relabel
from .recipes import choose_recipe, find_recipe
from .recipes.fit import fit
from .records import OBSERVATION_KEYS, Array, Episode, GoalSpec
from .replay.buffer import HindsightBuffer
from .replay.sampler import compile_kernels
from .rollout.collect import RolloutSetup
from .rollout.processes import ProcessPool
from .rollout.ray_source import RayPool
from .rollout.workers import LocalSource, Source, WorkerPool, WorkerSource
from .storage import save_bytes
from .training.checkpoint import SavedModel
from .training.evaluate import UNSEEN_SEED, Evaluation, outcomes
from .training.settings import resolve_settings

if TYPE_CHECKING:
    from .training.learners import Learners
    from .training.run_folder import RunFolder
    from .training.trainer import Counts, Trainer

Environment = str | Callable[[], gymnasium.Env[Any, Any]] | gymnasium.Env[Any, Any]
_AGENT_STREAM, _REPLAY_STREAM = 3, 4  # beside the three of rollout.collect


class HER:
    """An agent that learns to reach goals by Hindsight Experience Replay (Andrychowicz et al. 2017).

    env: an id, a callable that makes an environment, or an environment (which then serves training and evaluation in turn).
    agent: "dqn", "qrdqn", "ddpg", "td3", "sac" or "tqc"; the recipe's, for actions of this kind, unless given. recipe: the
    name of one, or a .toml file; chosen by the environment's id unless given. Every further keyword is an option by its
    name (`HER(env, seed=0, tau=0.01)`), the same names as on the command line. Raises UnknownNameError and OptionError for
    what cannot be.
    """

    def __init__(self, env: Environment, agent: str | None = None, recipe: str | None = None, **options: Any) -> None:
        env_id = env if isinstance(env, str) else None
        found = choose_recipe(recipe, env_id) if recipe or env_id else None
        given = options.get("env_options", found.env_options if found else ())
        making = RolloutOptions(env_options=coerce("env_options", given, tuple[str, ...]))
        environment = make_goal_env(env, env_options=making.env_arguments)
        try:
            spec = read_spec(environment)
            found = fit(found or find_recipe(spec.env_id), spec)
            agent = agent or found.agent_for(is_discrete=spec.action.n_values is not None)
            settings = resolve_settings(found, agent, options)
            _refuse_idle_engine(settings.rollout)
            _refuse_other_options(settings, making)
            self._begin(env, environment, spec, settings)
        except HindsightError:
            if environment is not env:
                environment.close()
            raise

    def _begin(
        self, env: Environment | None, environment: gymnasium.Env[Any, Any] | None, spec: GoalSpec, settings: Settings
    ) -> None:
        is_shared = settings.rollout.workers or settings.training.learners > 1
        if isinstance(env, gymnasium.Env) and (is_shared or settings.rollout.remake_environment):
            raise OptionError(
                "an environment object can neither be in several processes (workers, learners) nor be made again "
                "(remake_environment): give its id, or a function that makes it"
            )
        self.spec, self.settings = spec, settings
        self._env, self._environment = env, environment
        self._saved: SavedModel | None = None
        self._agent: Agent | None = None
        self._trainer: Trainer | None = None
        self._learners: Learners | None = None
        self._source: Source | None = None
        self._record: RunFolder | None = None
        self._policy: Policy | None = None
        self._policy_learnt: tuple[int, int] | None = None  # episodes and updates when it was loaded
        self._steps_before = 0
        self._generator = np.random.default_rng(settings.training.seed)

    def learn(
        self,
        total_timesteps: int,
        callback: Callback | Sequence[Callback] | None = None,
        log_interval: int | None = None,
        reset_num_timesteps: bool = True,
        folder: str | Path | None = None,
    ) -> Self:
        """Train for `total_timesteps` more environment steps; the episode under way at the end is finished and counts too.

        callback: one, or several, called with a `View` after each job of episodes; False stops. log_interval: print a line
        every so many episodes. reset_num_timesteps: count `num_timesteps` from 0 again. folder: write settings, metrics
        (those that callbacks record among them), checkpoints and the latest policy there, as `hindsight train` does; a new
        folder, or the one that this model wrote last. May be called again and again; returns the model. Evaluations are
        the matter of callbacks, or of `hindsight train`: eval_every, solved_at and steps change nothing here.
        """
        trainer = self.trainer
        from .training.trainer import JobFinished

        record = self._record_in(Path(folder)) if folder is not None else None
        callbacks = [callback] if callable(callback) else list(callback or ())
        if reset_num_timesteps:
            self._steps_before = trainer.counts.env_steps
        until, goes_on = trainer.counts.env_steps + total_timesteps, True
        while goes_on and trainer.counts.env_steps < until:
            before = trainer.counts.episodes
            episodes = trainer.learn_from_next_job()
            view = self._view(episodes)
            if log_interval and view.episodes // log_interval > before // log_interval:
                print(view)
            answers = [each(view) for each in callbacks]
            goes_on = all(answer is not False for answer in answers)
            if record:
                record.listen(trainer, JobFinished(episodes))
        if record:
            record.finish(trainer)
        return self

    def predict(
        self,
        observation: Mapping[str, Any],
        state: Any = None,
        mask: Any = None,
        deterministic: bool = True,
    ) -> tuple[Array, Any]:
        """The action for one observation, or actions for a batch of them.

        observation: a dict of observation, achieved_goal and desired_goal, each with or without one leading axis. state,
        mask: for recurrent policies elsewhere; `state` comes back as it was. deterministic: False draws from a stochastic
        policy (SAC); the others act the same. Raises ShapeError and MissingKeyError.
        """
        (seen, achieved, desired), is_batch = self._checked(observation)
        exploration = None if deterministic else Exploration(random_eps=0.0, noise=0.0, samples=True)
        act = self.policy.predict if is_batch else self.policy.act
        return act(seen, achieved, desired, exploration, self._generator), state

    def action_probability(
        self,
        observation: Mapping[str, Any],
        state: Any = None,
        mask: Any = None,
        actions: Any = None,
        logp: bool = False,
    ) -> Array | tuple[Array, Array]:
        """How likely the actions of a stochastic policy are, for one observation or a batch, without exploration.

        Discrete actions: the probability of each, (..., n). Others: mean and standard deviation before squashing, each
        (..., size). actions: give the probability (density) of these instead, or its logarithm where `logp`; (...,). state,
        mask: as in `predict`. Raises InputError for a deterministic policy, whose action is the one that `predict` gives.
        """
        (seen, achieved, desired), _ = self._checked(observation)
        if actions is None:
            return self.policy.distribution(seen, achieved, desired)
        log = self.policy.log_probability(seen, achieved, desired, np.asarray(actions))
        return log if logp else np.exp(log)

    def evaluate(self, episodes: int = 100, seed: int = UNSEEN_SEED) -> Evaluation:
        """Play `episodes` without noise, on seeds that training never used: success rate, interval, return."""
        if episodes < 1:
            raise OptionError(f"episodes is {episodes}, but at least 1 is needed to evaluate")
        return Evaluation(tuple(outcomes(self.source, self.weights, seed, range(episodes))))

    def save(self, path_or_file: str | Path | BinaryIO) -> None:
        """Write everything but the replay buffer to a file, atomically, or to an open binary file."""
        content = self.saved_model().to_bytes()
        if isinstance(path_or_file, str | Path):
            save_bytes(Path(path_or_file), content)
        else:
            path_or_file.write(content)

    @classmethod
    def load(cls, path_or_file: str | Path | BinaryIO, env: Environment | None = None, **overrides: Any) -> Self:
        """A model from a policy file, from the best policy of a run folder, or from an open binary file.

        Predicting needs no environment. Learning and evaluating use `env`, or the registered environment it was trained on;
        an id or a function gets the `env_options` of that training. overrides: options for learning on. Raises FileError
        for a damaged or foreign file, or an environment that does not fit.
        """
        if isinstance(env, gymnasium.Env):  # it is made already
            overrides = {"env_options": ()} | overrides
        if isinstance(path_or_file, str | Path):
            saved = SavedModel.read(Path(path_or_file), **overrides)
        else:
            saved = SavedModel.from_bytes(path_or_file.read(), "the file", **overrides)
        model = cls.__new__(cls)
        environment = None if env is None else make_goal_env(env, env_options=saved.settings.rollout.env_arguments)
        if environment is not None and (difference := saved.spec.difference(read_spec(environment))):
            raise FileError(f"the policy does not fit the environment: {difference}")
        model._begin(env, environment, saved.spec, saved.settings)
        model._saved = saved
        return model

    @property
    def num_timesteps(self) -> int:
        """Environment steps since training began, or since `learn` last reset the count."""
        return self._trainer.counts.env_steps - self._steps_before if self._trainer else 0

    @property
    def environment_id(self) -> str:
        """The registered id of the environment. Raises OptionError where it has none."""
        if self.spec.env_id is None:
            raise OptionError("the environment of this policy has no registered id: give it, as HER.load(path, env=...)")
        if ":" in self.spec.env_id:  # Gymnasium would import what stands before the colon
            raise OptionError(f"the file names the environment {self.spec.env_id!r}: import its module, and give env=...")
        return self.spec.env_id

    @property
    def policy(self) -> Policy:
        """The policy as it acts now, in NumPy."""
        learnt = (self._trainer.counts.episodes, self._trainer.counts.updates) if self._trainer else None
        if self._policy is None or learnt != self._policy_learnt:
            self._policy, self._policy_learnt = Policy(self._policy_spec), learnt
            self._policy.load(self.weights)
        return self._policy

    @property
    def weights(self) -> PolicyWeights:
        """The policy's weights as they are now."""
        return self._saved.weights if self._saved and not self._agent else self.agent.policy_weights()

    @property
    def agent(self) -> Agent:
        """The agent, made at first use; acting alone does not need it."""
        if self._agent is None:
            self._agent = self._make_agent()
        return self._agent

    @property
    def source(self) -> Source:
        """Where episodes come from, made at first use."""
        if self._source is None:
            self._source = self._make_source()
        return self._source

    @property
    def trainer(self) -> Trainer:
        """The trainer, made at first use."""
        if self._trainer is None:
            from .training.trainer import Counts, Trainer

            learners = self.learners  # first of all: they share the workers
            agent, buffer, counts = self.agent, self._make_buffer(), self._counts_so_far(Counts)
            self._trainer = Trainer(agent, buffer, self.source, self.settings, counts, learners=learners)
            if learners.rank == 0:
                self._trainer.lead()
        elif self._source is None:  # it was closed
            self._trainer.move_to(self.source)
        return self._trainer

    @property
    def learners(self) -> Learners:
        """Those that learn together; the others are started at first use."""
        if self._learners is None:
            self._learners = self._gather_learners()
        return self._learners

    def saved_model(self) -> SavedModel:
        """The model as a file would hold it."""
        if self._saved and not self._trainer:
            return self._saved
        facts = self._trainer.counts.facts() if self._trainer else {}
        return SavedModel.take(self.agent, self.settings, self.spec, facts)

    def close(self) -> None:
        """Close environments and files, and end worker processes."""
        if self._record is not None:
            self._record.close()
            self._record = None
        if self._learners is not None:
            self._dismiss(self._learners)
        if self._source is not None:
            self._source.close()
            self._source = None
        if self._environment is not None and not isinstance(self._env, gymnasium.Env):
            self._environment.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _record_in(self, path: Path) -> RunFolder:
        """The run folder at `path`, held from now on until another one is asked for or the model is closed."""
        from .training.run_folder import RunFolder

        if self._record is None or self._record.path != path:
            folder = RunFolder(path, self.settings, self.spec)
            try:
                folder.begin()
            except HindsightError:
                folder.close()
                raise
            if self._record is not None:
                self._record.close()
            self._record = folder
        return self._record

    def _view(self, episodes: list[Episode]) -> View:
        counts = self.trainer.counts
        told = [episode.success for episode in episodes if episode.success is not None]
        return View(
            num_timesteps=self.num_timesteps,
            episodes=counts.episodes,
            updates=counts.updates,
            success_rate=float(np.mean(told)) if told else None,
            episode_return=float(np.mean([episode.reward.sum() for episode in episodes])),
            model=self,
        )

    def _checked(self, observation: Mapping[str, Any]) -> tuple[list[Array], bool]:
        """The three arrays of an observation, and whether they have a leading axis."""
        arrays, batches = [], []
        for key in OBSERVATION_KEYS:
            if key not in observation:
                raise MissingKeyError(f"the observation has the keys {', '.join(observation)}, but {key} is needed")
            shape = (self.spec.observation if key == "observation" else self.spec.goal).shape
            array = np.asarray(observation[key])
            batches.append(array.shape[:1] if array.ndim == len(shape) + 1 else None)
            if array.shape != (batches[-1] or ()) + shape or batches[-1] != batches[0]:
                raise ShapeError(
                    f"{key} has shape {array.shape}, but {shape} is needed, in all three with or without one more axis"
                )
            arrays.append(array)
        return arrays, batches[0] is not None

    def _environment_of(self) -> tuple[Environment, gymnasium.Env[Any, Any]]:
        """What makes environments, and one that is made."""
        if self._env is None:
            self._env = self.environment_id
        if self._environment is None:
            self._environment = make_goal_env(self._env, env_options=self.settings.rollout.env_arguments)
            found = read_spec(self._environment)
            if found.max_episode_steps != self.spec.max_episode_steps or self.spec.difference(found):
                raise OptionError(
                    f"{self._env} as it is registered ({found.max_episode_steps} steps) is not what this policy learnt on "
                    f"({self.spec.max_episode_steps} steps): give that, as HER.load(path, env=...)"
                )
        return self._env, self._environment

    def _counts_so_far(self, counts: type[Counts]) -> Counts:
        """Those of the saved model that is learnt on with: no episode is played twice, and none at random any more."""
        facts = self._saved.facts if self._saved else {}
        known = {name: int(facts.get(name, 0)) for name in ("env_steps", "episodes", "updates")}
        return counts(**known, submitted_episodes=known["episodes"])

    def _gather_learners(self) -> Learners:
        from .training.learners import Alone, Group, LocalGroup

        count, device = self.settings.training.learners, self.settings.agent_options.device
        if count == 1:
            return Alone()
        if "TORCHELASTIC_RUN_ID" in os.environ:  # started by torchrun, on this machine or on several
            return Group(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device, None)
        maker, _ = self._environment_of()
        return LocalGroup(count, device, _follow, (maker, self.settings))

    def _dismiss(self, learners: Learners) -> None:
        from .training.learners import STOP

        with contextlib.suppress(LearnerError):
            if learners.rank == 0:
                learners.tell(STOP)
        learners.close()

    def _make_agent(self) -> Agent:
        try:
            seed = _seed(self.settings.training.seed, _AGENT_STREAM)
            agent = make_agent(self.settings.agent, self._spec_to_learn(), self.settings.agent_options, seed)
        except ModuleNotFoundError as problem:
            raise MissingExtraError(f'training needs torch ({problem}): pip install "hindsight-rl[train]"') from None
        if self._saved:
            agent.load_state_dict(self._saved.agent_state)
        return agent

    def _spec_to_learn(self) -> GoalSpec:
        """The task, whose range of rewards is not known where steps pay more than the compute_reward it was read from."""
        has_extra = self.settings.replay.extra_reward
        return replace(self.spec, reward_low=-np.inf, reward_high=np.inf) if has_extra else self.spec

    @property
    def _policy_spec(self) -> PolicySpec:
        return self._saved.policy if self._saved and not self._agent else self.agent.policy_spec

    def _make_source(self) -> Source:
        env, environment = self._environment_of()
        rollout = self.settings.rollout
        count, rank = (self._learners.count, self._learners.rank) if self._learners else (1, 0)
        workers = rollout.workers // count + (rank < rollout.workers % count)
        maker = None if isinstance(env, gymnasium.Env) else env
        remake = rollout.remake_environment
        if remake is None:
            remake = maker is not None and not resets_exactly(maker, rollout.env_arguments)
        setup = RolloutSetup(
            maker,
            self._policy_spec,
            rollout.max_episode_steps,
            self.settings.replay.info_keys,
            remake,
            rollout.env_arguments,
        )
        if not workers:
            return LocalSource(setup, environment if maker is None else None)
        is_ray = rollout.engine == "ray"
        pool: WorkerPool = RayPool(setup, workers, rollout.ray_address) if is_ray else ProcessPool(setup)
        return WorkerSource(pool, workers, rollout.job_timeout)

    def _make_buffer(self) -> HindsightBuffer:
        _, environment = self._environment_of()
        replay = self.settings.replay
        compile_kernels()
        return HindsightBuffer(
            replay.capacity,
            environment.observation_space,
            environment.action_space,
            reward_function(environment),
            n_sampled_goal=None if replay.relabel else replay.n_sampled_goal,
            strategy=Relabel.parse(replay.relabel) if replay.relabel else replay.strategy,
            seed=_seed(self.settings.training.seed, _REPLAY_STREAM, *([self.learners.rank] if self.learners.rank else [])),
            compute_terminated=terminated_function(environment),
            relabel_terminated=replay.relabel_terminated,
            extra_reward=replay.extra_reward,
            success_reward=self._success_reward(),
            n_steps=replay.n_steps,
            discount=self.settings.agent_options.discount,
            info_keys=replay.info_keys,
            episode_length=self.settings.rollout.max_episode_steps or self.spec.max_episode_steps,
            prioritized=replay.prioritized,
            alpha=replay.alpha,
            beta=replay.beta,
            energy_priority=replay.energy_priority,
            energy_cap=replay.energy_cap,
            energy_remaining=replay.energy_remaining,
            symmetries=replay.symmetries,
            subgoals=self._policy_spec.subgoals,
            subgoal_fraction=replay.subgoal_fraction,
            relabel_at=replay.relabel_at,
        )

    def _success_reward(self) -> float:
        """What success pays; needed, and so known, only where it is to end episodes."""
        highest = self.spec.reward_high
        if self.settings.replay.relabel_terminated == "success" and not np.isfinite(highest):
            raise OptionError(
                "relabel_terminated is 'success', but what success pays was not found out, since the reward is not one of "
                "two values: choose 'keep' or 'never', or give the environment a compute_terminated"
            )
        return highest if np.isfinite(highest) else 0.0


def _follow(rank: int, rendezvous: Path, env: str | Callable[[], gymnasium.Env[Any, Any]], settings: Settings) -> None:
    """The life of a learner that is not the first."""
    from .training.learners import Group

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # stopping is the first learner's decision
    environment = make_goal_env(env, env_options=settings.rollout.env_arguments)
    model = HER.__new__(HER)
    model._begin(env, environment, read_spec(environment), settings)
    model._learners = Group(rank, settings.training.learners, settings.agent_options.device, rendezvous)
    with model, contextlib.suppress(LearnerError):  # the first one tells the story, of its end too
        model.trainer.follow()


def _refuse_idle_engine(rollout: RolloutOptions) -> None:
    """Raise OptionError where somebody asks for an engine that would have nothing to do."""
    if rollout.engine == "ray" and not rollout.workers:
        raise OptionError("engine is 'ray', but workers is 0: say how many it shall run, as --workers 2")
    if rollout.ray_address and rollout.engine != "ray":
        raise OptionError(f"ray_address is {rollout.ray_address!r}, but engine is {rollout.engine!r}: add --engine ray")


def _refuse_other_options(settings: Settings, made: RolloutOptions) -> None:
    """Raise OptionError where a recipe asks for an environment that was not made so, since it was found too late."""
    if settings.rollout.env_options != made.env_options:
        raise OptionError(
            f"the recipe {settings.recipe!r} has env_options {list(settings.rollout.env_options)}, but the environment was "
            f"made with {list(made.env_options)}: say which, as HER(env, env_options=(...))"
        )


def _seed(run_seed: int, *stream: int) -> int:
    return int(np.random.SeedSequence(run_seed, spawn_key=stream).generate_state(1)[0])

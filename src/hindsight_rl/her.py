"""HER: learn, predict, evaluate, save and load an agent."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, Self

import numpy as np

from .agents import Agent
from .agents.layout import check_observation
from .agents.policy import Policy, PolicyWeights
from .callbacks import Callback, PrintEvery, View
from .envs.check import CheckReport
from .envs.goal_env import EnvSource
from .envs.wrappers import append_keys
from .errors import OptionError
from .options import Settings
from .records import Array, Episode, GoalSpec
from .records.exploration import Exploration
from .replay.rows import true_or_false, whole_number
from .rollout.episode_sources import EpisodeSource
from .seeds import UNSEEN_SEED
from .storage import as_path
from .training.assemble import assemble, assemble_saved
from .training.evaluate import Evaluation, evaluate
from .training.events import EpisodesStored
from .training.interruptions import OneThread, finished, interrupts_held_back
from .training.run_state import Counts
from .training.saved_model import SavedModel

if TYPE_CHECKING:  # torch is imported when training begins
    from .training.run_folder import RunFolder
    from .training.trainer import Trainer


class HER:
    """An agent that learns to reach goals by Hindsight Experience Replay (Andrychowicz et al. 2017).

    env: an id, a function that makes an environment, or an environment, which then serves training and evaluation in turn.
    agent: "dqn", "qrdqn", "ddpg", "td3", "sac" or "tqc". Default: the recipe's, by the kind of actions.
    recipe: the name of a recipe (a set of tuned hyperparameters), or a .toml file. Default: chosen by the environment's id.
    saved: a model to go on from, see `load`. Agent and recipe are then its own.
    check: first test the environment as `hindsight-rl check` does. An error raises GoalEnvError, `learn` shows
        warnings, and options that neither you nor the recipe set follow what was found. False skips it.
    options: every option by its name, as on the command line: `HER(env, seed=0, tau=0.01)`.
    Raises UnknownNameError, OptionError and GoalEnvError.
    """

    def __init__(
        self,
        env: EnvSource | None,
        agent: str | None = None,
        recipe: str | Path | None = None,
        *,
        saved: SavedModel | None = None,
        check: bool = True,
        **options: Any,
    ) -> None:
        if saved is not None:
            self._assembly = assemble_saved(env, saved, options)
        elif env is not None:
            self._assembly = assemble(env, agent, recipe, options, true_or_false("check", check))
        else:
            raise OptionError("env is None. Give an id, a function that makes an environment, or an environment")
        self.check_report: CheckReport | None = self._assembly.check_report
        self._saved = saved
        self._agent: Agent | None = None
        self._trainer: Trainer | None = None
        self._source: EpisodeSource | None = None
        self._folder: RunFolder | None = None
        self._policy: Policy | None = None
        self._policy_version: tuple[int, int] | None = None  # episodes and updates when the policy was loaded
        self._steps_before = 0
        self._one_thread = OneThread()
        self._rng = np.random.default_rng(self.settings.training.seed)

    def learn(
        self,
        total_timesteps: int,
        callback: Callback | Sequence[Callback] | None = None,
        log_interval: int | None = None,
        reset_num_timesteps: bool = True,
        folder: str | Path | None = None,
    ) -> Self:
        """Train for at least `total_timesteps` more environment steps, and stop at the end of a job.

        A job is `episodes_per_job` whole episodes and the updates after them.
        callback: one or several functions. Each is called with a `View` after each job, not after each step as in SB3.
            Return False to stop training.
        log_interval: print a line every `log_interval` episodes.
        reset_num_timesteps: count `num_timesteps` from 0 again. False: continue the count, also that of a loaded model.
        folder: write settings, metrics, checkpoints and policies there, as `hindsight-rl train` does. It must be
            new, or the one that this model wrote last. After an error or Ctrl-C it holds a checkpoint and the latest
            policy.
        Ctrl-C stops at the end of the job, and raises KeyboardInterrupt then. A second one raises it at once.
        Evaluations are made by callbacks or `hindsight-rl train`: eval_every and solved_at have no effect here. `beta` of
        prioritized replay reaches 1 at the end of this call, or at `steps` if you gave it.
        Raises OptionError unless total_timesteps is a whole number of at least 0, and InUseError while another thread is in
        `learn`, `evaluate` or `save` of this model.
        """
        whole_number("total_timesteps", total_timesteps, 0)
        callbacks, path = _as_callbacks(callback, log_interval), None if folder is None else as_path("folder", folder)
        with self._one_thread.calls("learn"), interrupts_held_back() as interrupts:
            if self._trainer is None:
                _warn(self.check_report, self._saved)
            trainer, files = self.trainer, None if path is None else self._open_folder(path)
            if true_or_false("reset_num_timesteps", reset_num_timesteps):
                self._steps_before = trainer.counts.env_steps
            until = trainer.counts.env_steps + total_timesteps
            trainer.updates.last_step = self.settings.training.steps if "steps" in self.settings.given else until
            with finished(files, trainer) if files else nullcontext():
                _learn(self, until, callbacks, files, interrupts)
        return self

    def predict(
        self, observation: Mapping[str, Any], state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Array, Any]:
        """Return the action for one observation, or actions for a batch of them, and `state` as it was given.

        observation: a dict of observation, achieved_goal and desired_goal, each with or without one leading axis, as the
            environment returns it: the keys of the option `observation_keys` are appended here.
        state, episode_start: as in SB3, but ignored, since no policy is recurrent.
        deterministic: False samples the action of SAC and TQC. It has no effect on the other agents.
        Raises ShapeError and MissingKeyError.
        """
        seen, achieved, desired = _arrays_of(observation, self.spec, self.settings)
        exploration = (
            None if true_or_false("deterministic", deterministic) else Exploration(random_eps=0.0, noise=0.0, samples=True)
        )
        return self.policy.act(seen, achieved, desired, exploration, self._rng), state

    def action_probability(
        self,
        observation: Mapping[str, Any],
        state: Any = None,
        mask: Any = None,
        actions: Any = None,
        logp: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Return how probable the actions of a stochastic policy are, without exploration.

        Discrete actions: the probability of each, (..., n). Others: mean and standard deviation before tanh, (..., size).
        actions: return the probability (density) of these actions instead, (...,), or its logarithm with `logp`.
        state, mask: ignored. Raises InputError for a deterministic policy.
        """
        seen, achieved, desired = _arrays_of(observation, self.spec, self.settings)
        if actions is None:
            return self.policy.distribution(seen, achieved, desired)
        log = self.policy.log_probability(seen, achieved, desired, np.asarray(actions))
        return log if logp else np.exp(log)

    def evaluate(self, episodes: int = 100, seed: int = UNSEEN_SEED) -> Evaluation:
        """Return the success rate, its interval and the return of `episodes` episodes without exploration.

        seed: at least 0. Training uses other episodes; with the default, so does the choice of the best policy.
        The result is also written to the run folder that `learn` wrote last, if it is still open.
        Raises InUseError as `learn` does.
        """
        whole_number("episodes", episodes, 1)
        whole_number("seed", seed, 0)
        with self._one_thread.calls("evaluate"):
            evaluation = Evaluation(tuple(evaluate(self.source, self.weights, seed, range(episodes))))
            if self._folder is not None:
                self._folder.add_evaluation(self.trainer, evaluation)
        return evaluation

    def save(self, path_or_file: str | Path | BinaryIO) -> None:
        """Write everything but the replay buffer to a file, atomically, or to an open binary file.

        Raises InUseError as `learn` does.
        """
        with self._one_thread.calls("save"):
            self.saved_model().write(path_or_file)

    @classmethod
    def load(cls, path_or_file: str | Path | BinaryIO, env: EnvSource | None = None, **overrides: Any) -> Self:
        """Return a model from a policy file, from the best policy of a run folder, or from an open binary file.

        env: for learning and evaluating. Default: the registered environment that it was trained on. Predicting needs none.
            An id or a function gets the `env_options` of that training.
        overrides: options that change.
        Raises FileError for a file that is damaged or not ours, or if the environment does not fit.
        """
        return cls(env, saved=SavedModel.read(path_or_file), **overrides)

    @property
    def settings(self) -> Settings:
        """The settings of the run as they are now."""
        return self._trainer.settings if self._trainer else self._assembly.settings

    @property
    def spec(self) -> GoalSpec:
        """The task."""
        return self._assembly.spec

    @property
    def num_timesteps(self) -> int:
        """Environment steps since training began (before saving too), or since `learn` last reset the count."""
        return self._counts.env_steps - self._steps_before

    @property
    def policy(self) -> Policy:
        """The policy as it is now, in NumPy."""
        version = (self._trainer.counts.episodes, self._trainer.counts.updates) if self._trainer else None
        if self._policy is None or version != self._policy_version:
            spec = self._saved.policy if self._saved and not self._agent else self.agent.policy_spec
            self._policy, self._policy_version = Policy(spec), version
            self._policy.load(self.weights)
        return self._policy

    @property
    def weights(self) -> PolicyWeights:
        """The weights of the policy as they are now."""
        return self._saved.weights if self._saved and not self._agent else self.agent.policy_weights()

    @property
    def agent(self) -> Agent:
        """The agent, made at first use. Acting does not need it."""
        if self._agent is None:
            self._agent = self._assembly.agent(self.settings, self._saved.agent_state if self._saved else None)
            if self._saved:
                self._agent.load_state_dict(self._saved.agent_state)
                paths = self._agent.waypoints.next_waypoint  # during a trial of paths, saved policies have none
                self._agent.follows_paths = np.array_equal(paths, self._saved.weights.next_waypoint)
        return self._trainer.agent if self._trainer else self._agent

    @property
    def source(self) -> EpisodeSource:
        """The source of episodes, made at first use."""
        if self._source is None:
            self._source = self._assembly.source(self.policy.spec)
            if self._trainer is not None:  # its source was closed
                self._trainer.move_to(self._source)
        return self._source

    @property
    def trainer(self) -> Trainer:
        """The trainer, made at first use."""
        source = self.source
        if self._trainer is None:
            self._trainer = self._assembly.trainer(self.agent, source, self._counts)
        return self._trainer

    def saved_model(self) -> SavedModel:
        """Return the content of the file that `save` writes."""
        if self._saved and not self._trainer:
            return replace(self._saved, settings=self.settings)
        return SavedModel.take(self.agent, self.settings, self.spec, self._counts.facts())

    def close(self) -> None:
        """Close environments and files, and end worker processes."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None
        if self._source is not None:
            self._source.close()
            self._source = None
        self._assembly.close()

    def __repr__(self) -> str:
        return f"HER({self.spec.env_id or 'env'}, agent={self.settings.agent!r}, {self.num_timesteps} steps)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a HER holds environments and cannot be copied or pickled. Save it and load it again")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    @property
    def _counts(self) -> Counts:
        return self._trainer.counts if self._trainer else Counts.from_facts(self._saved.facts if self._saved else {})

    def _open_folder(self, path: Path) -> RunFolder:
        """Return the run folder at `path`. It stays open until `learn` gets another one, or until `close`."""
        if self._folder is None or self._folder.path != path:
            folder = _begin_folder(path, self.trainer, self.spec)
            if self._folder is not None:
                self._folder.close()
            self._folder = folder
        return self._folder


def _learn(
    model: HER, until: int, callbacks: Sequence[Callback], files: RunFolder | None, interrupts: Sequence[Signals]
) -> None:
    """Train until `until` environment steps, until a callback returns False, or until there are interrupts."""
    trainer, episodes, goes_on = model.trainer, list[Episode](), True
    for event in trainer.learn(until):
        if isinstance(event, EpisodesStored):
            episodes = event.episodes
        elif episodes:
            view = View.take(model, episodes)
            for each in callbacks:
                goes_on = each(view) is not False and goes_on
        if files:
            files.listen(trainer, event)
        if interrupts or not goes_on:
            return


def _warn(report: CheckReport | None, saved: SavedModel | None) -> None:
    """Warn about what the check found, and about a loaded model that does not go on as it began."""
    if report is not None:
        report.warn()
    if saved is not None and saved.found_nothing_yet:
        warnings.warn(
            "The model was saved before its run had found the structure of the task. It goes on without. A new run "
            "looks for it.",
            UserWarning,
            stacklevel=3,
        )


def _begin_folder(path: Path, trainer: Trainer, spec: GoalSpec) -> RunFolder:
    """Return the folder of a new run. Raises RunFolderError if a run was begun in it."""
    from .training.run_folder import RunFolder

    folder = RunFolder(path, trainer.settings, spec, demonstrations=trainer.demonstrations)
    try:
        folder.begin(
            f"Give another folder. To go on from its policy: HER.load({str(path)!r}).learn(..., folder=...), also with "
            f"another folder"
        )
    except BaseException:
        folder.close()
        raise
    return folder


def _as_callbacks(callback: Callback | Sequence[Callback] | None, log_interval: int | None) -> list[Callback]:
    """Return the callbacks of `HER.learn` as a list: one that prints, if there is an interval, then the given ones."""
    given = [callback] if callable(callback) else () if callback is None else callback
    if not isinstance(given, Sequence) or not all(map(callable, given)):
        raise OptionError(f"callback must be a function of a View, or a list of them, got {callback!r}.")
    return [*([PrintEvery(log_interval)] if log_interval else []), *given]


def _arrays_of(observation: Mapping[str, Any], spec: GoalSpec, settings: Settings) -> tuple[Array, Array, Array]:
    """Return observation, with what the settings append to it, achieved goal and desired goal."""
    keys = settings.rollout.observation_keys
    if keys and isinstance(observation, Mapping):
        observation = append_keys(observation, keys, spec.observation.size)
    return check_observation(spec, observation)[0]

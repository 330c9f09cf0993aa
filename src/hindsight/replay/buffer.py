"""HindsightBuffer: steps in, relabelled batches out. For anybody's learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, InputError, OptionError
from ..options.relabel import Relabel, RelabelAt, check_relabel_at
from ..options.replay import check_drawing
from ..records import Array, Batch, Episode, GoalSpec
from ..records.symmetries import Symmetries
from ..storage import load_folder, save_folder
from .chance import check_state
from .ends import RewardFunction, choose_termination
from .goals import Strategy, check_strategy
from .open_episodes import OpenEpisodes
from .priorities import ByEnergy, ByError
from .returns import check_discount
from .rows import row_dtype, whole_number
from .sampler import Sampler
from .subgoal_goals import SubgoalGoals
from .timeline import Timeline
from .told import Told, judge_entries

KIND = "hindsight buffer"
MUST_AGREE = (
    "capacity",
    "episode_length",
    "dtype",
    "info_keys",
    "n_envs",
    "prioritized",
    "alpha",
    "energy_priority",
    "energy_cap",
    "energy_remaining",
    "relabel_at",
)


class HindsightBuffer:
    """A replay buffer for goal-conditioned tasks that relabels goals in hindsight (Andrychowicz et al. 2017).

    capacity: transitions kept, the oldest episodes leaving first. observation_space: a Dict space with observation,
    achieved_goal and desired_goal. compute_reward(next_achieved_goal, goal, info) -> (N,), vectorised; info holds an (N,)
    array for each of info_keys. n_sampled_goal: k hindsight goals per real one, a share of k/(k+1) of the samples, each
    decided apart; 4 unless given. strategy: future, final, episode, random, a `Relabel`, which says the shares itself, or a
    function (rows, steps_done, steps_left, u) -> goal rows; it may be set at any time.
    n_envs: how many environments `add` serves at once. seed: a number, or a NumPy Generator to draw it from.
    compute_terminated: like compute_reward, for the ends under a new goal; without it they stay as stored.
    relabel_terminated: otherwise "keep", as stored; "never"; or "success", where compute_success(next_achieved_goal, goal,
    info) says so, or without it where the reward under the new goal is at least success_reward. Samples with their own goal
    stay as stored; `replay.ends` says what suits which environments.
    n_steps: above 1, rewards are discounted sums over up to so many steps under the sample's goal, to the episode's end
    or to a termination; what comes next is seen after the last of them, and `discount` of a batch is discount**steps, or 0
    where the last terminated. For 1 it is None.
    episode_length: the usual length, from the time limit. dtype: the widest float that is kept, float32 or float64.
    relabel_at: "sample" puts goals in hindsight whenever a batch is drawn; "episode_end" does so once, when an episode
    ends, as older libraries do: k goals for every step (4 for a `Relabel`, 1 for "final") are kept, with what they pay and
    whether they end, at the cost of k times those bytes per row. What is wrong with compute_reward then shows in `add`,
    `add_episode` and `end_open_episodes`. "random" and `desired` draw from all that is held as the episode ends, and from
    itself; a user's strategy is given rows that count on from behind the ring's last. Not with n_steps above 1.
    prioritized: draw rows in proportion to (priority + 1e-6)^alpha, as told by `update_priorities` (Schaul et al. 2016);
    batches then have weights, which make up for it to the power `beta`, that may be set at any time. energy: draw rows in
    proportion to how far the achieved goal moved in their episode instead (after Zhao and Tresp 2018), up to energy_cap,
    in the goal's units: all that moved so far or farther then counts alike. energy_remaining: each row counts by the way still
    ahead of it, up to the limit, and by a tenth of the whole: after the last move no goal from later on is a new one.
    symmetries: turns and mirrors under which the world is the same, see `hindsight.records.symmetries`; each sample is seen
    from a side of its own. They must leave every reward as it is.
    extra_reward: what a step paid besides compute_reward under the goal that was asked, a penalty for a crash for instance,
    it pays under every goal; without it that is lost where goals are put in hindsight. Not with subgoals.
    subgoals: goals on the way, see `hindsight.records.subgoals`; a share subgoal_fraction of the samples is told under their goals
    instead of the task's, as `subgoal` of a batch says, and paid success_reward where the subgoal is met, one less elsewhere.
    """

    def __init__(
        self,
        capacity: int,
        observation_space: Any,
        action_space: Any,
        compute_reward: RewardFunction,
        n_sampled_goal: int | None = None,
        strategy: str | Strategy | Relabel = "future",
        n_envs: int = 1,
        seed: int | np.random.Generator = 0,
        compute_terminated: RewardFunction | None = None,
        info_keys: Sequence[str] = (),
        episode_length: int | None = None,
        dtype: str = "float32",
        relabel_terminated: str | None = None,
        compute_success: RewardFunction | None = None,
        success_reward: float = 0.0,
        n_steps: int = 1,
        discount: float = 0.98,
        prioritized: bool = False,
        alpha: float = 0.6,
        beta: float = 0.4,
        energy_priority: bool = False,
        energy_cap: float | None = None,
        energy_remaining: bool = False,
        symmetries: Sequence[str] = (),
        subgoals: Sequence[str] = (),
        subgoal_fraction: float = 0.2,
        relabel_at: RelabelAt = "sample",
        extra_reward: bool = False,
    ) -> None:
        settings = {
            "spec": GoalSpec.from_spaces(observation_space, action_space).to_json(),
            "capacity": capacity,
            "episode_length": episode_length,
            "dtype": dtype,
            "info_keys": list(info_keys),
            "n_envs": n_envs,
            "n_sampled_goal": n_sampled_goal,
            "strategy": _written(strategy),
            "relabel_terminated": relabel_terminated,
            "success_reward": success_reward,
            "n_steps": n_steps,
            "discount": discount,
            "prioritized": prioritized,
            "alpha": alpha,
            "energy_priority": energy_priority,
            "energy_cap": energy_cap,
            "energy_remaining": energy_remaining,
            "symmetries": list(symmetries),
            "subgoals": list(subgoals),
            "subgoal_fraction": subgoal_fraction,
            "relabel_at": relabel_at,
            "extra_reward": extra_reward,
        }
        self._set_up(settings, strategy, seed, compute_reward, compute_terminated, compute_success)
        self.beta = beta

    def _set_up(
        self,
        settings: dict[str, Any],
        strategy: str | Strategy | Relabel,
        seed: int | np.random.Generator,
        compute_reward: RewardFunction,
        compute_terminated: RewardFunction | None,
        compute_success: RewardFunction | None,
    ) -> None:
        """Build the parts; settings: what a file keeps of the arguments of `__init__`."""
        shape = (settings[name] for name in ("capacity", "episode_length", "info_keys", "dtype"))
        spec = GoalSpec.from_json(settings["spec"])
        timeline = self._timeline = Timeline(spec, *shape)
        n_envs = whole_number("n_envs", settings["n_envs"], 1)
        n_sampled_goal = settings["n_sampled_goal"]
        if n_sampled_goal is not None:
            n_sampled_goal = whole_number("n_sampled_goal", n_sampled_goal, 0)
        timeline.priorities = _make_rule(len(timeline.rows), settings)
        self._open = OpenEpisodes(timeline, n_envs)
        rule, success_reward = settings["relabel_terminated"], settings["success_reward"]
        ends = choose_termination(rule, compute_terminated, compute_success, success_reward)
        ahead = whole_number("n_steps", settings["n_steps"], 1), check_discount(settings["discount"])
        symmetries, extra = Symmetries(settings["symmetries"], spec), bool(settings["extra_reward"])
        subgoals = SubgoalGoals(timeline, settings["subgoals"], settings["subgoal_fraction"], success_reward, symmetries)
        check_relabel_at(settings["relabel_at"], ahead[0])
        if subgoals.subgoals and settings["relabel_at"] != "sample":
            raise OptionError(
                "relabel_at is 'episode_end', but the goals of subgoals are drawn with each sample: use 'sample'"
            )
        if subgoals.subgoals and extra:
            raise OptionError(
                "extra_reward is True, but subgoals pay by their distance alone: set subgoals=() or leave it out"
            )
        self._strategy, self._n_sampled_goal = strategy, n_sampled_goal
        self._told: Told | None = None
        if settings["relabel_at"] == "sample":
            self._sampler = Sampler(
                timeline, compute_reward, n_sampled_goal, strategy, seed, ends, *ahead, symmetries, subgoals, extra
            )
        else:
            whose = timeline, compute_reward, 0, "future", seed, ends
            sampler = self._sampler = Sampler(*whose, symmetries=symmetries, extra_reward=extra)
            told = Told(sampler.chance, judge_entries(sampler.judging), n_sampled_goal, strategy)
            self._told = timeline.told = sampler.told = told
        numbers = {"capacity": timeline.capacity, "episode_length": timeline.episode_length}
        self._settings = settings | numbers | {"n_envs": n_envs, "n_sampled_goal": n_sampled_goal, "n_steps": ahead[0]}

    def __len__(self) -> int:
        """The number of transitions that can be sampled: those of finished episodes."""
        return len(self._timeline)

    @property
    def num_episodes(self) -> int:
        """The number of finished episodes held."""
        return self._timeline.num_episodes

    @property
    def timeline(self) -> Timeline:
        """The finished episodes: to be read."""
        return self._timeline

    @property
    def open_episodes(self) -> OpenEpisodes:
        """The episodes that have not ended yet: to be read."""
        return self._open

    @property
    def nbytes(self) -> int:
        """All memory that the buffer owns: the ring and what lies beside it, the open episodes, scratch."""
        parts = (self._timeline, self._open, self._sampler, self._timeline.priorities, self._told)
        return sum(part.nbytes for part in parts if part is not None)

    @property
    def her_probability(self) -> float:
        """The share of samples that are relabelled: k/(k+1), or what a `Relabel` says."""
        return self._sampler.her_probability if self._told is None else self._told.share

    @property
    def strategy(self) -> str | Strategy | Relabel:
        """Where hindsight goals come from; another may be set at any time, unless goals are drawn as episodes end.

        A name or a function relabels with the n_sampled_goal that the buffer was made with.
        """
        return self._strategy

    @strategy.setter
    def strategy(self, strategy: str | Strategy | Relabel) -> None:
        if self._told is not None:
            raise OptionError("relabel_at is 'episode_end': goals are drawn already, so the strategy stays as it is")
        k = None if isinstance(strategy, Relabel) else self._n_sampled_goal
        self._sampler.relabel_by(strategy, k)
        self._strategy = strategy
        self._settings = self._settings | {"strategy": _written(strategy), "n_sampled_goal": k}

    @property
    def symmetries(self) -> Symmetries:
        """The augmented from which samples are seen; there is always one, from which all is as it was."""
        return self._sampler.symmetries

    @property
    def beta(self) -> float:
        """How far weights make up for rows that are drawn more often: 0 not at all, 1 wholly."""
        return self._sampler.beta

    @beta.setter
    def beta(self, beta: float) -> None:
        if not 0 <= beta <= 1:
            raise OptionError(f"beta is {beta}, but it must lie between 0 (no weights) and 1 (full ones)")
        self._sampler.beta = float(beta)

    def update_priorities(self, row: Any, priority: Any) -> None:
        """Say how wrong the samples of the last draw were: integers, such as batch.row, and numbers of the same shape.

        Of a row that comes twice the last counts; rows whose episode was evicted since the last draw are passed over.
        Raises InputError for NaN, infinity, negative numbers, other shapes and rows that start no transition; nothing is
        changed then.
        """
        if self._timeline.priorities is None:
            raise InputError("this buffer draws all rows alike: make it with prioritized=True")
        self._timeline.priorities.update(row, priority)

    def add(
        self,
        observation: Mapping[str, Any],
        action: Any,
        reward: Any,
        next_observation: Mapping[str, Any],
        terminated: Any,
        truncated: Any,
        info: Any = None,
    ) -> None:
        """Take one step of every environment: arrays with a leading axis n_envs, none needed for one.

        info: Gymnasium's dict of arrays, a list of dicts, or a single dict. An episode can be sampled once it has ended. An
        observation that is not the next_observation of the step before means a reset that the buffer was not told of: the
        open episode is closed as truncated there. Environments that reset themselves are understood: in the step after an
        end (Gymnasium's NEXT_STEP), where the step that only starts from the last observation, with reward 0, is skipped;
        and in the same step (SAME_STEP), where what came last is read from info["final_obs"] and info["final_info"].
        Raises MissingKeyError, ShapeError, CastError, NonFiniteError, EpisodeTooLongError or InputError; nothing is stored
        then, of any environment.
        """
        self._open.add(observation, next_observation, (action, reward, terminated, truncated), info)

    def add_episode(self, episode: Episode) -> None:
        """Take a whole episode at once; refuses it as `add` would, before anything is written."""
        self._timeline.append(episode)

    def end_open_episodes(self) -> None:
        """Close every open episode as truncated: for resets in the middle of one."""
        self._open.close_all()

    def sample(self, batch_size: int, out: Batch | None = None) -> Batch:
        """A batch of independent draws, arrays (batch_size, ...), that never aliases the store.

        With priorities, one from each of batch_size equal shares of their sum: in the order of the rows.
        out: a batch that was returned before for the same size: its memory is used again, and it is returned.
        Raises NothingToSampleError, InputError, or GoalEnvError where compute_reward is unusable.
        """
        return self._sampler.sample((whole_number("batch_size", batch_size, 1),), out)

    def sample_open(self, batch_size: int) -> Batch:
        """As `sample`, from the steps of open episodes, with the goals of what has happened in them so far.

        For learners that cannot wait for the first end; the open episodes are copied for it, every time.
        """
        mine, k = self._sampler, self._settings["n_sampled_goal"]
        rules = (mine.judging.compute_reward, k, self._strategy, 0, mine.judging.ends, mine.n_steps, mine.discount)
        sampler = Sampler(self._open.as_ended(), *rules, extra_reward=mine.judging.extra_reward)
        sampler.chance.state = mine.chance.state
        return sampler.sample((whole_number("batch_size", batch_size, 1),))

    def sample_many(self, n: int, batch_size: int, out: Batch | None = None) -> Batch:
        """n batches in one draw, arrays (n, batch_size, ...): quicker than n calls; `batches[i]` is one of them."""
        return self._sampler.sample((whole_number("n", n, 1), whole_number("batch_size", batch_size, 1)), out)

    def already_achieved_fraction(self, batch: Batch) -> float | None:
        """The share of the relabelled samples whose goal was achieved before their step, so that they teach little.

        Achieved means that the reward there is as good as at the goal itself. None where nothing was relabelled, or where
        the reward needs more than goals (info_keys).
        """
        is_told = batch.is_relabelled
        if self._settings["info_keys"] or not is_told.any():
            return None
        before, goal = batch.achieved_goal[is_told], batch.goal[is_told]
        judge = self._sampler.judging.compute_reward
        return float(np.mean(np.asarray(judge(before, goal, {})) >= np.asarray(judge(goal, goal, {}))))

    def state_dict(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays and strict JSON from which `load_state_dict` goes on to the same bytes.

        The arrays are views where they are large: write or copy them before the buffer changes.
        """
        arrays = self._timeline.state() | self._open.state() | {"random_state": self._sampler.chance.state.copy()}
        if self._timeline.priorities is not None:
            arrays |= self._timeline.priorities.state(self._timeline.high_water)
        if self._told is not None:
            arrays |= self._told.state(self._timeline.high_water)
        return arrays, {"settings": self._settings, "beta": self.beta}

    def load_state_dict(self, arrays: Mapping[str, Array], data: Mapping[str, Any]) -> None:
        """Take the contents and the random state of another buffer of the same task, capacity and n_envs.

        Raises FileError, naming what differs, and leaves the buffer as it was.
        """
        priorities = self._timeline.priorities
        try:
            self._refuse_other_kind(data["settings"])
            self._timeline.check(arrays)
            self._open.check(arrays)
            if priorities is not None:
                priorities.check(arrays, arrays["rows"].reshape(-1).view(self._timeline.rows.dtype)["steps_left"])
            if self._told is not None:
                self._told.check(arrays, len(arrays["rows"]))
            random_state, beta = arrays["random_state"], data["beta"]
            check_state(random_state)
            stored = _read_strategy(data["settings"]["strategy"])
            strategy = self._strategy if stored is None else check_strategy(stored)
            if not 0 <= beta <= 1:
                raise FileError(f"beta is {beta}, but it must lie between 0 and 1")
        except (KeyError, TypeError, AttributeError) as problem:
            raise FileError(f"the stored buffer is malformed ({problem!r}): it is not ours, or damaged") from None
        self._timeline.load(arrays)
        self._open.load(arrays)
        if priorities is not None:
            priorities.load(arrays)
        if self._told is not None:
            self._told.load(arrays)
        self._sampler.chance.load(random_state)
        self.beta = beta
        if self._told is None:
            self.strategy = strategy

    def _refuse_other_kind(self, settings: Mapping[str, Any]) -> None:
        mine, spec = self._settings, GoalSpec.from_json(settings["spec"])
        differences = [f"{k} {mine[k]!r} against {settings[k]!r}" for k in MUST_AGREE if mine[k] != settings[k]]
        if row_dtype(spec, settings["info_keys"], settings["dtype"]) != self._timeline.rows.dtype:
            differences.insert(0, self._timeline.spec.difference(spec) or "the dtypes of its spaces")
        if differences:
            raise FileError(f"the stored buffer is of another kind: {'; '.join(differences)}")

    def save(self, path: str | Path) -> None:
        """Write everything but the functions to the folder `path`, whole or not at all; open episodes and chance too."""
        save_folder(Path(path), KIND, *self.state_dict())

    @classmethod
    def load(
        cls,
        path: str | Path,
        compute_reward: RewardFunction,
        compute_terminated: RewardFunction | None = None,
        strategy: Strategy | None = None,
        compute_success: RewardFunction | None = None,
    ) -> HindsightBuffer:
        """The buffer that was saved at `path`; it goes on to the same bytes. Reading runs no code.

        The functions are not in the file and are given again; strategy only where it was the user's own.
        Raises FileError naming the file that is missing, damaged, foreign or of another version.
        """
        arrays, data = load_folder(Path(path), KIND)
        try:
            settings = data["settings"]
            chosen = strategy or _read_strategy(settings["strategy"])
            if chosen is None:
                raise FileError(
                    "it used a strategy of its user's own, which is not in the file: give it again, strategy=..."
                )
            if settings["n_envs"] != len(arrays["open_steps"]):
                raise FileError(
                    f"it is of {settings['n_envs']} environments, but of {len(arrays['open_steps'])} open episodes"
                )
            data = data | {"settings": settings | {"strategy": _written(chosen)}}
            buffer = cls.__new__(cls)
            buffer._set_up(settings, chosen, 0, compute_reward, compute_terminated, compute_success)
            buffer.load_state_dict(arrays, data)
        except (KeyError, TypeError, AttributeError, ValueError, MemoryError) as problem:
            raise FileError(f"the buffer at {path} cannot be taken: {problem}") from None
        return buffer


def _written(strategy: str | Strategy | Relabel) -> Any:
    """As a file keeps it; a function cannot be kept."""
    return asdict(strategy) if isinstance(strategy, Relabel) else None if callable(strategy) else strategy


def _read_strategy(stored: Any) -> Any:
    """What `_written` wrote; None for a function."""
    return Relabel(**stored) if isinstance(stored, dict) else stored


def _make_rule(n_rows: int, settings: Mapping[str, Any]) -> ByError | ByEnergy | None:
    limit, ahead = settings["energy_cap"], settings["energy_remaining"]
    check_drawing(settings["prioritized"], settings["energy_priority"], limit, ahead)
    if settings["prioritized"]:
        return ByError(n_rows, settings["alpha"])
    return ByEnergy(n_rows, limit, ahead) if settings["energy_priority"] else None

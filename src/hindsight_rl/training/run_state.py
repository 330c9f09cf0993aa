"""The state of a run: its parts as they are now, what it counts, and how far its search for structure is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..errors import FileError
from ..options import Settings
from ..options.settings import DemonstrationOptions, EnvironmentOptions, FileOptions, WorkerOptions
from ..recipes.presets import load_preset
from ..records import Episode, Finding, read_record
from ..records.exploration import Exploration, Probing
from ..structure import Endings, Structure, explain_findings, explain_missing
from ..structure.random_actions import SMALL_FRACTION
from ..structure.steps import HELD_OUT, MOSTLY
from .resolve import Found
from .unguided_success import PathTrial, UnguidedSuccess

if TYPE_CHECKING:  # they import torch and numba, which counting does not need
    from ..agents import Agent
    from ..replay.buffer import HindsightBuffer
    from ..rollout.episode_sources import EpisodeSource
    from .demonstrations import Demonstrations

Parts: TypeAlias = "tuple[Agent, HindsightBuffer, Demonstrations | None]"  # of a run: those that follow from its settings
FACTS = ("env_steps", "check_steps", "episodes", "updates")  # of a policy file
SHORT_REPEAT = 5  # steps that a random action is repeated at most, in half of the episodes after the first look
SCALING_EPISODE_STEPS = 200
# Steps after which a random episode ends, unless HELD_OUT longer ones fit into the random steps. Shorter ones show little
# of a task: with 200, PointMaze_UMaze is solved after 1,950 steps instead of 1,500 (medians of six seeds).
RANDOM_EPISODE_STEPS = 500
# Steps after which an episode ends that waits for a contact or seeks one. Only the first contact of an episode counts, so
# long episodes show few.
SEEKING_EPISODE_STEPS = 100
GUESS_EVERY = 4  # episodes: one of them steers the tool, or what may be the tool
SEEK_EVERY = 2  # before learning begins: each contact that these show saves steps without an update
# Options that say where the run gets its episodes and puts its files. No search finds them:
FIXED = frozenset(
    name
    for record in (EnvironmentOptions, WorkerOptions, FileOptions, DemonstrationOptions)
    for name in record.model_fields
)
Phase = Literal["random", "scaling", "probing", "learning"]


@dataclass
class Counts:
    """How far a run is, and how many faults it had. The trainer owns and increases them.

    env_steps: of training. Schedules and limits go by them.
    check_steps: environment steps before training, to check the environment and to read its task. A resumed run plays the
        same ones again, and does not count them again.
    refused_episodes: episodes with values that the buffer does not store, NaN for instance.
    failed_jobs: attempts at a job that ended with an error of the environment. The job was run again.
    stale_episodes: episodes dropped because their weights were older than `policy_lag` jobs.
    lost_workers: worker processes that were replaced.
    damaged_results: job results that were dropped. Their jobs were run again.
    finished_jobs: jobs with stored episodes and all updates that were due for them; also the version of the weights.
    unfinished_steps: environment steps of the job that is stored but not finished; 0: there is none.
    is_searched: whether the search for the structure of the task has taken account of that job.
    submitted_episodes: the number of the next training episode.
    offline_updates: updates from demonstrations alone, before the first step; they are updates too.
    catch_up_updates: updates that new agents made in place of those of the agents that they replaced; they are updates too.
    due_updates: updates that are due, with the fraction that is carried over.
    start_seconds: wall time of the command before the first job.
    collect_seconds: wall time of waiting for training episodes.
    update_seconds: wall time of storing episodes and of updates.
    evaluate_seconds: wall time of waiting for evaluation episodes.
    write_seconds: wall time of files, report and display, which receive the events. A resumed run adds to all five times.
    """

    env_steps: int = 0
    check_steps: int = 0
    episodes: int = 0
    updates: int = 0
    refused_episodes: int = 0
    refused_in_a_row: int = 0
    failed_jobs: int = 0
    stale_episodes: int = 0
    lost_workers: int = 0
    damaged_results: int = 0
    finished_jobs: int = 0
    unfinished_steps: int = 0
    is_searched: bool = False
    submitted_episodes: int = 0
    offline_updates: int = 0
    catch_up_updates: int = 0
    due_updates: float = 0.0
    start_seconds: float = 0.0
    collect_seconds: float = 0.0
    update_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    write_seconds: float = 0.0

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Counts:
        """Return the counts of a policy file. Its episodes are not played again."""
        env_steps, check_steps, episodes, updates = (int(facts.get(name, 0)) for name in FACTS)
        return cls(env_steps, check_steps, episodes, updates, submitted_episodes=episodes)

    def add_faults(self, faults: Mapping[str, int]) -> None:
        """Add the fault counts of a source, by their names."""
        for name, count in faults.items():
            setattr(self, name, getattr(self, name) + count)

    def facts(self) -> dict[str, Any]:
        """Return how far the run is, for a policy file."""
        return {name: getattr(self, name) for name in FACTS}


@dataclass
class Meter:
    """Means since the last record, by the names of the metrics."""

    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, total: float, count: int = 1) -> None:
        """Add `count` values with the sum `total`."""
        self.sums[name] = self.sums.get(name, 0.0) + total
        self.counts[name] = self.counts.get(name, 0) + count

    def add_episode(self, episode: Episode) -> None:
        """Add a training episode."""
        self.add("train/return", float(episode.reward.sum()))
        self.add("train/episode_steps", len(episode))
        if episode.success is not None:
            self.add("train/success_rate", float(episode.success))

    def means(self) -> dict[str, float]:
        """Return the means so far."""
        return {name: self.sums[name] / self.counts[name] for name in sorted(self.sums)}

    def take_means(self) -> dict[str, float]:
        """Return the means so far, and start again."""
        means = self.means()
        self.sums, self.counts = {}, {}
        return means


@dataclass(eq=False)
class RunState(ABC):
    """The parts of a run as they are now. The trainer is this state: no other object keeps one of the parts.

    The settings hold the structure of the task as it is known now.

    agent: the agent to train.
    buffer: stores the episodes and samples relabelled batches.
    source: collects the episodes.
    settings: the options of the run.
    counts: how far the run is: zero for a new run.
    demonstrations: recorded episodes to learn from as well, or None.
    meter: means of the metrics since the last record.
    success: of the agent in its unguided training episodes.
    """

    agent: Agent
    buffer: HindsightBuffer
    source: EpisodeSource
    settings: Settings
    counts: Counts
    demonstrations: Demonstrations | None = None
    meter: Meter = field(default_factory=Meter, init=False)
    success: UnguidedSuccess = field(default_factory=UnguidedSuccess, init=False)

    @abstractmethod
    def drop_jobs(self) -> None:
        """Drop the jobs in flight."""

    @abstractmethod
    def rebuild(self, parts: Parts, settings: Settings, why_new: str = "") -> None:
        """Go on with these parts. why_new: why the agent is a new one."""


@dataclass
class SearchState:
    """How far the search is.

    next_at: environment steps after which the structure is inferred next; None: not again.
    first_scaled: index of the first episode that compares a fraction of the action range with all of it.
    random_episodes: number of stored episodes with random actions, which are the first ones.
    first_probing: index of the first stored episode that sought contact.
    probing_episodes: number of episodes from there that sought contact.
    seek_until: environment steps after which the search for the first contacts, and then probing, ends at the latest.
    has_contact: whether the probing episodes show what touches the object.
    endings: how the episodes so far ended.
    probing: the plan that steers the tool to the object. guesses: those for possible tools, while no contact was seen.
    trial: whether planned paths help an agent that mostly fails without them; None: it was not tried.
    noiseless_until: the number of the episode after those without noise, which show whether it is the noise that fails, and
        not the agent that may be replaced; 0: none are played.
    found: the options that follow from all episodes so far.
    missing: what the last inference did not find, and why, in sentences. findings: what it found, with figures.
    """

    phase: Phase = "random"
    next_at: int | None = 0
    first_scaled: int = 0
    random_episodes: int = 0
    first_probing: int = 0
    probing_episodes: int = 0
    seek_until: int = 0
    has_contact: bool = False
    probing: Probing | None = None
    guesses: tuple[Probing, ...] = ()
    trial: PathTrial | None = None
    noiseless_until: int = 0
    endings: Endings = field(default_factory=Endings)
    found: Found = field(default_factory=Found)
    missing: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SearchState:
        """Return the state whose `asdict` was stored. Raises FileError if it is malformed."""
        state = read_record(cls, data, "search for structure")
        choices = [*state.found.structure, *state.found.endings]
        if fixed := FIXED & {choice.option for choice in choices}:
            raise FileError(f"The search for structure found {sorted(fixed)}, which no search does. The file is not ours.")
        structure = tuple(choice._replace(value=_tuples(choice.value)) for choice in state.found.structure)
        state.found = replace(state.found, structure=structure)
        return state

    def end(self, capacity: int) -> None:
        """End the search: the buffer no longer holds the first episodes. capacity: of the buffer, in steps."""
        held = f"the buffer holds only {capacity:,} steps, so the first ones are gone"
        why = f"structure that needs more steps: {held}. Increase `capacity`"
        self.phase, self.next_at, self.missing = "learning", None, (*self.missing, why)

    def observe(self, episode: Episode, looks_for_endings: bool) -> None:
        """Take note of how an episode ended. looks_for_endings: whether it is open how successes end episodes."""
        if looks_for_endings:
            self.endings.add(episode)
        if self.open_trial is not None:
            self.open_trial.add(episode)

    def update_endings(self) -> bool:
        """Use how successes end episodes while no episode contradicts it. Return whether `found` changed."""
        used = self.found.value("success_reward")
        if used is None and self.endings.is_clear:
            self.take_endings()
        elif used is not None and self.endings.contradict(used):
            self.found = replace(self.found, endings=())
        else:
            return False
        return True

    def take_endings(self) -> None:
        """Use how successes end episodes."""
        self.found = replace(self.found, endings=self.endings.choices())

    def exploration(self, exploration: Exploration, episode: int, random_steps: int) -> Exploration:
        """Return how an episode of the warm-up explores. exploration: that of random actions. episode: its number."""
        if self.phase == "probing":
            return replace(exploration, probing=self.probing, episode_steps=SEEKING_EPISODE_STEPS)
        if self.phase == "scaling":
            repeat = int(load_preset("cancelling_actions").options["random_action_repeat"])
            held = replace(exploration, random_action_repeat=repeat, episode_steps=SCALING_EPISODE_STEPS)
            return replace(held, random_scale=SMALL_FRACTION) if episode % 2 else held
        if self.next_at == random_steps:
            # of long episodes, parts are played: the first inference needs HELD_OUT episodes, and updates wait for it
            return replace(exploration, episode_steps=max(random_steps // HELD_OUT, RANDOM_EPISODE_STEPS))
        exploration = replace(exploration, episode_steps=SEEKING_EPISODE_STEPS)
        exploration = _with_plan(exploration, episode, self.guesses, SEEK_EVERY)
        if exploration.probing:  # the others stay random: they say how the world moves by itself
            return exploration
        return replace(exploration, random_action_repeat=SHORT_REPEAT) if episode // SEEK_EVERY % 2 else exploration

    def ends_noiseless(self, episode: int) -> bool:
        """Return whether the episodes without noise have been played. episode: the number of the next one."""
        is_over = 0 < self.noiseless_until <= episode
        self.noiseless_until = 0 if is_over else self.noiseless_until
        return is_over

    def take_late(self, found: Structure) -> None:
        """Use what may change while an agent learns: symmetries that hold now, and hidden columns that matter now.

        All other symmetries are dropped: a wall that breaks a mirror may be found late.
        """
        options = {"symmetry": "symmetries"} | ({"column": "hidden_observation"} if found.shows_columns_again else {})
        others = [finding for finding in self.findings if finding.kind not in options]
        new = [finding for finding in explain_findings(found) if finding.kind in options]
        self.missing, self.findings = tuple(explain_missing(found)), (*others, *new)
        for option in options.values():
            self.found = self.found.with_option(option, found.choices())

    @property
    def open_trial(self) -> PathTrial | None:
        """The trial of planned paths, as long as it is not decided."""
        return None if self.trial is None or self.trial.is_over else self.trial

    @property
    def follows_paths(self) -> bool:
        """Whether the policy acts for waypoints, if it has any."""
        return self.open_trial is None or self.open_trial.are_usual

    def searching(self, exploration: Exploration, episode: int, success: UnguidedSuccess) -> Exploration:
        """Return the exploration of an episode of an agent that learns.

        Some episodes steer the tool to the object until most others succeed: a policy that only pushes an object seldom
        finds out that it can be grasped. Guesses of the tool are tried until there is a success.
        """
        if self.open_trial is not None:
            return self.open_trial.exploration(exploration, episode)
        if self.probing is not None and success.recent_rate < MOSTLY:
            return _with_plan(exploration, episode, (self.probing,), GUESS_EVERY)
        return exploration if any(success.successes) else _with_plan(exploration, episode, self.guesses, GUESS_EVERY)


def _with_plan(exploration: Exploration, episode: int, plans: Sequence[Probing], every: int) -> Exploration:
    """Return the exploration with one of the plans after another, in one of so many episodes."""
    if not plans or episode % every != 1:
        return exploration
    return replace(exploration, probing=plans[episode // every % len(plans)])


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value

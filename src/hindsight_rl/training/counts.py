"""How far a run is, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FACTS = ("env_steps", "check_steps", "episodes", "updates")  # of a policy file


@dataclass
class Counts:
    """How far a run is, and what went wrong. The trainer owns them and counts on.

    env_steps: of training. Schedules and limits go by them.
    check_steps: environment steps before training, to check the environment and to read its task. A resumed run plays the
        same ones again, and does not count them again.
    refused_episodes: episodes with values that the buffer does not store, NaN for instance.
    failed_jobs: attempts at a job that ended with an error of the environment. The job was run again.
    stale_episodes: episodes dropped because their weights were older than `policy_lag` jobs.
    lost_workers: worker processes that were replaced.
    foreign_answers, duplicate_answers, truncated_answers: answers of workers that were dropped. Their jobs were run again.
    finished_jobs: jobs with stored episodes and all updates that they were owed; also the version of the weights.
    unfinished_steps: environment steps of the job that is stored but not finished; 0: there is none.
    is_searched: whether the search for the structure of the task has taken account of that job.
    submitted_episodes: the number of the next training episode.
    offline_updates: updates from demonstrations alone, before the first step; they are updates too.
    catch_up_updates: with which new agents make up for those of the agents that they replaced; they are updates too.
    owed_updates: updates that are due, with the fraction that is carried over.
    start_seconds: wall time of the command before the first job; collect_seconds: of waiting for training episodes;
        update_seconds: of storing and updating; evaluate_seconds: of waiting for evaluation episodes; write_seconds: of
        what receives the events (files, report, display). A resumed run adds to them.
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
    foreign_answers: int = 0
    duplicate_answers: int = 0
    truncated_answers: int = 0
    finished_jobs: int = 0
    unfinished_steps: int = 0
    is_searched: bool = False
    submitted_episodes: int = 0
    offline_updates: int = 0
    catch_up_updates: int = 0
    owed_updates: float = 0.0
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

"""What a run writes: records in files that grow line by line, and policies.

What the disk does not take is written with the next.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import storage
from ..errors import FileError
from ..records import GOAL_DIMENSIONS, Episode
from ..rollout.workers import FAULTS
from .evaluate import Evaluation
from .events import OptionsChanged
from .run_state import Counts
from .saved_model import SavedModel

METRICS, EVALUATIONS, EPISODES, CHANGES = "metrics.jsonl", "evaluations.jsonl", "episodes.jsonl", "changes.jsonl"
GROWING = (METRICS, EVALUATIONS, EPISODES, CHANGES)
FAULT_METRICS = ("refused_episodes", "failed_jobs", "stale_episodes", *FAULTS)
SECONDS = ("start_seconds", "collect_seconds", "update_seconds", "evaluate_seconds", "write_seconds")
MOST_CELLS = 100_000_000  # of the table; with 50 metrics, records of 2 * 10^9 steps
RECENT_EVALUATIONS = 10  # eval/mean_success_rate is their mean


class LineFiles:
    """Appends lines of JSON to the files of a folder. Lines that a full disk refuses are written later.

    unsaved: the lines that are still to be written, by the names of their files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.unsaved: dict[str, str] = {}

    def append(self, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records to a file. Raises OSError if that fails."""
        if lines := storage.json_lines(records):
            self.unsaved[name] = self.unsaved.get(name, "") + lines
            self.write(name)

    def write(self, *names: str) -> None:
        """Write the lines that are still to be written, of all files without `names`."""
        for name in names or list(self.unsaved):
            storage.append_text(self._folder / name, self.unsaved[name])
            del self.unsaved[name]

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files that exist, in bytes."""
        places = {name: self._folder / name for name in GROWING}
        return {name: place.stat().st_size for name, place in places.items() if place.exists()}

    def truncate(self, sizes: Mapping[str, int]) -> None:
        """Shorten the files to these sizes, and those without a size to nothing."""
        for name in GROWING:
            storage.truncate(self._folder / name, sizes.get(name, 0))


class PolicyFiles:
    """Writes policies: the latest, the best, and those that are kept under their steps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unsaved: dict[str, SavedModel] = {}  # by their names

    def write(self, models: Mapping[str, SavedModel]) -> None:
        """Write models under their names, and what is still to be written. Raises OSError if the disk fails."""
        self._unsaved |= models
        for name in list(self._unsaved):
            self._unsaved[name].write(self._folder / "policies" / f"{name}.safetensors")
            del self._unsaved[name]


def write_table(metrics: Path, table: Path) -> None:
    """Write the records of a file of JSON lines as CSV, in the order of their steps, with a column for every metric.

    The records are read twice, and never all in memory: a long run has many.
    Raises FileError if the table would have more than MOST_CELLS.
    """
    names: dict[str, None] = {}
    steps, places = array("d"), array("q")
    for place, record in storage.read_lines(metrics):
        if record is not None:
            names |= dict.fromkeys(record)
            steps.append(_steps(record))
            places.append(place)
        if len(names) * len(steps) > MOST_CELLS:
            raise FileError(f"{metrics} has {len(names):,} metrics in {len(steps):,} records: too many for a table")
    order = np.asarray(places)[np.argsort(steps, kind="stable")]  # an evaluation is recorded late
    storage.write_csv(
        table, list(names), (record for _, record in storage.read_lines(metrics, order.tolist()) if record is not None)
    )


def _steps(record: Mapping[str, Any]) -> float:
    """Return the environment steps of a record, 0 for a damaged one."""
    try:
        return float(record.get("env_steps", 0))
    except (TypeError, ValueError, OverflowError):
        return 0.0


def count_metrics(now: Counts, faults: Counts) -> dict[str, float]:
    """Return the counts as metrics. faults: counts that the fault metrics come from."""
    return {
        "env_steps": now.env_steps,
        "check_steps": now.check_steps,
        "episodes": now.episodes,
        "train/episode": now.episodes,
        "updates": now.updates,
        "offline_updates": now.offline_updates,
        "catch_up_updates": now.catch_up_updates,
        **{name: getattr(faults, name) for name in FAULT_METRICS},
        "seconds": now.collect_seconds + now.update_seconds,
        **{name: getattr(now, name) for name in SECONDS},
    }


def evaluation_metrics(evaluation: Evaluation, history: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return an evaluation as metrics, with the success rate under the names of Stable-Baselines3 too."""
    low, high = evaluation.interval
    metrics = {f"test/{name}": value for name, value in evaluation.to_json().items() if name != "interval"}
    metrics |= {"test/success_low": low, "test/success_high": high}
    if evaluation.q_mean is not None:
        metrics["test/mean_q"] = evaluation.q_mean
    recent = [past["success_rate"] for past in history[-RECENT_EVALUATIONS:]]
    return metrics | {"eval/success_rate": evaluation.success_rate, "eval/mean_success_rate": float(np.mean(recent))}


def episode_records(episodes: Sequence[Episode], env_steps: int) -> Iterator[dict[str, Any]]:
    """Yield the line of each training episode: its result, and the first dimensions of its goals, to six digits.

    env_steps: environment steps of the run after the last of the episodes.
    """
    env_steps -= sum(map(len, episodes))
    for episode in episodes:
        env_steps += len(episode)
        yield {
            "env_steps": env_steps,
            "episode": episode.number,
            "steps": len(episode),
            "success": episode.success,
            "return": _rounded(episode.reward.sum()),
            "final_goal": [_rounded(x) for x in episode.achieved_goal[-1].ravel()[:GOAL_DIMENSIONS]],
            "desired_goal": [_rounded(x) for x in episode.desired_goal[-1].ravel()[:GOAL_DIMENSIONS]],
        }


def change_record(change: OptionsChanged) -> dict[str, Any]:
    """Return the line of a change of options."""
    return vars(change) | {"changes": [each._asdict() for each in change.changes]}


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")

"""Maps of goals: where evaluation episodes succeed and fail, and which goals training episodes achieved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..records import GOAL_DIMENSIONS, Array
from .figures import Plot, rounded
from .run import EpisodeFacts, Run

MAX_EPISODES = 4000  # of evaluation, and of training, on a map
MIN_SHOWN = 50  # evaluation episodes, the latest ones
JITTER = 0.16  # range of the jitter of whole numbers, below 2 * 0.1
JITTER_STEPS = (0.6180, 0.7549)  # for x and y: their multiples modulo 1 fill a square evenly (Roberts 2018)


def goal_maps(run: Run) -> list[Plot]:
    """Return maps of the first dimension of the goals that varies against the others that vary.

    A single varying dimension is drawn against the environment steps. Goals that do not vary have no map.
    """
    columns = varying_columns(_goals(run.evaluated, "desired_goal"))
    return [_map(run, columns[0], up) for up in columns[1:] or columns[:1]]


def varying_columns(goals: Array) -> list[int]:
    """Return the columns of goals (N, d) that vary: their lowest and highest value differ in the first three digits."""
    is_finite = np.isfinite(goals)
    lowest = goals.min(0, initial=np.inf, where=is_finite)
    highest = goals.max(0, initial=-np.inf, where=is_finite)
    bounds = list(zip(lowest.tolist(), highest.tolist(), strict=True))
    return [i for i, (low, high) in enumerate(bounds) if low < high and f"{low:.3g}" != f"{high:.3g}"]


def constant_dimensions(run: Run) -> str:
    """Return sentences such as "goal[2] is 0.425 everywhere.", one for each dimension of the goals that does not vary."""
    goals = _goals(run.evaluated, "desired_goal")
    constant = sorted(set(range(goals.shape[1])) - set(varying_columns(goals))) if len(goals) else []
    return " ".join(f"goal[{i}] is {goals[0, i]:.3g} everywhere." for i in constant)


def jittered(values: Array, ratio: float) -> Array:
    """Return whole numbers moved by less than 0.1, so that equal points are visible.

    Other numbers are returned as they are. ratio: one of JITTER_STEPS.
    """
    if not is_whole(values):
        return values
    return np.asarray(values + JITTER * (np.arange(len(values)) * ratio % 1.0 - 0.5))


def is_whole(values: Array) -> bool:
    """Return whether all finite values are whole numbers."""
    finite = values[np.isfinite(values)]
    return bool((finite == np.round(finite)).all())


def _map(run: Run, across: int, up: int) -> Plot:
    """Return the map of two dimensions of the goals, or of one against the environment steps if both are the same."""
    y_title = "environment steps" if up == across else f"goal[{up}]"
    caption = "Desired goals of evaluations: success (blue), failure (red). Grey: goals at the end of training episodes."
    desired = _goals(run.evaluated, "desired_goal")
    if is_whole(desired[:, across]) or is_whole(desired[:, up]):
        caption += " Whole numbers are moved by less than 0.1, so that equal points are visible."
    goals = {
        "x_title": f"goal[{across}]",
        "y_title": y_title,
        "min_shown": MIN_SHOWN,
        "evaluated": _points(_thinned(run.evaluated), "desired_goal", across, up),
        "trained": _points(_thinned(run.trained), "final_goal", across, up),
    }
    title = f"Success over goals: goal[{across}] and {y_title}"
    return Plot(f"goals-{across}-{up}", title, caption, goals=goals)


def _points(episodes: Sequence[EpisodeFacts], name: str, across: int, up: int) -> dict[str, Any]:
    """Return the points of a map. name: of the goal that is drawn."""
    goals, steps = _goals(episodes, name), np.array([episode.env_steps for episode in episodes])
    if not len(goals):
        return {"x": [], "y": [], "steps": []}
    return {
        "x": rounded(jittered(goals[:, across], JITTER_STEPS[0])),
        "y": rounded(steps if up == across else jittered(goals[:, up], JITTER_STEPS[1])),
        "steps": steps.tolist(),
        "success": [episode.success for episode in episodes],
        "distance": [episode.final_distance for episode in episodes],
    }


def _goals(episodes: Sequence[EpisodeFacts], name: str) -> Array:
    """Return the goals, (N, d) with d <= GOAL_DIMENSIONS. NaN if an episode has none."""
    size = min(GOAL_DIMENSIONS, len(episodes[0].desired_goal)) if episodes else 0
    goals = [getattr(episode, name) or (np.nan,) * size for episode in episodes]
    return np.array([goal[:size] for goal in goals], np.float64).reshape(len(episodes), size)


def _thinned(episodes: Sequence[EpisodeFacts]) -> Sequence[EpisodeFacts]:
    """Return at most MAX_EPISODES episodes, evenly spaced over the run."""
    count = min(len(episodes), MAX_EPISODES)
    return [episodes[row] for row in np.linspace(0, len(episodes) - 1, count).astype(np.int64)]

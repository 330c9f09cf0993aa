"""Options that were chosen for a task, but contradict those of the recipe or of the user. The chosen ones go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..records import GoalSpec
from ..records.subgoals import is_chain, parse_subgoals
from ..records.symmetries import Symmetries, differing_columns

Chosen = dict[str, tuple[Any, str]]
ENERGY = ("energy_cap", "energy_remaining")
DECAY = ("exploration_decay", "exploration_decay_start")
WORKSPACE = ("lowest_achieved", "highest_achieved")


def without_contradictions(
    chosen: Mapping[str, tuple[Any, str]], above: Mapping[str, Any], spec: GoalSpec | None
) -> tuple[Chosen, Chosen]:
    """Return the chosen options that can be used, and the others, with the reason why they cannot.

    chosen: values and reasons by option. above: options of the recipe and of the user, which stay. spec: the task.
    """
    usable, dropped = dict(chosen), Chosen()
    for names, why in _contradictions(chosen, above):
        dropped |= {name: (usable.pop(name)[0], why) for name in names if name in usable}
    if spec is not None and "subgoals" in above and "symmetries" in usable:
        _keep_subgoals(above["subgoals"], usable, dropped, spec)
    if spec is not None and "symmetries" in above and "subgoals" in usable:
        _keep_symmetries(above["symmetries"], usable, dropped, spec)
    return usable, dropped


def _contradictions(
    chosen: Mapping[str, tuple[Any, str]], above: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield names of chosen options that cannot be used, and why."""
    if above.get("subgoals"):
        yield ("extra_reward", "n_waypoints"), "subgoals exclude it"
    if above.get("n_waypoints"):
        yield ("subgoals",), "n_waypoints excludes it"
    has_extra_reward = above.get("extra_reward", "extra_reward" in chosen and not above.get("subgoals"))
    if has_extra_reward or above.get("relabel_at", "sample") != "sample" or above.get("n_steps", 1) != 1:
        yield ("subgoals",), "extra_reward, relabel_at and n_steps exclude it"
    if above.get("prioritized"):
        yield ("energy_priority", *ENERGY), "prioritized also chooses the transitions"
    if not above.get("energy_priority", True):
        yield ENERGY, "energy_priority is off"
    if above.get("strategy", "future") != "future" or above.get("n_sampled_goal") is not None:
        yield ("relabel", "relabel_schedule"), "strategy and n_sampled_goal also choose the goals"
    if "relabel" in above or above.get("relabel_at", "sample") != "sample":
        yield ("relabel_schedule",), "relabel and relabel_at also choose the goals"
    for group in (DECAY, WORKSPACE):
        if set(group) & set(above):
            yield group, f"{' and '.join(group)} belong together"
    if above.get("n_target_critics") is not None:
        yield ("n_critics",), "n_target_critics counts on the number of critics"
    if above.get("goal_features", "relative") != "relative":
        yield ("hidden_goal", "hidden_observation"), "networks see all columns unless goal_features is relative"
    yield from _without_differences(chosen, above)


def _without_differences(
    chosen: Mapping[str, tuple[Any, str]], above: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what was found on the condition that the networks see differences that they do not see.

    Columns are hidden where differences say the same, and symmetries are tested without the hidden columns.
    """
    if "hidden_observation" in above:
        return
    needed, _ = chosen.get("column_differences", ((), ""))
    if missing := set(needed) - set(above.get("column_differences", needed)):
        yield ("hidden_observation", "symmetries"), f"column_differences lacks {', '.join(sorted(missing))}"


def _keep_subgoals(texts: Any, usable: Chosen, dropped: Chosen, spec: GoalSpec) -> None:
    """Drop the symmetries that do not transform the columns of these subgoals as they transform goals."""
    subgoals = parse_subgoals(texts, spec)
    if is_chain(subgoals):  # its samples are transformed before they get goals of subgoals
        return
    found, reason = usable.pop("symmetries")
    fits = [all(differing_columns(Symmetries([text], spec), each) is None for each in subgoals) for text in found]
    if all(fits):
        usable["symmetries"] = found, reason
        return
    kept = tuple(text for text, is_kept in zip(found, fits, strict=True) if is_kept)
    others = tuple(text for text, is_kept in zip(found, fits, strict=True) if not is_kept)
    dropped["symmetries"] = others, "subgoals name columns that are transformed in another way than goals"
    if kept:
        usable["symmetries"] = kept, reason


def _keep_symmetries(texts: Any, usable: Chosen, dropped: Chosen, spec: GoalSpec) -> None:
    """Drop the subgoals if these symmetries do not transform their columns as they transform goals."""
    found, _ = usable["subgoals"]
    subgoals, symmetries = parse_subgoals(found, spec), Symmetries(texts, spec)
    if not is_chain(subgoals) and any(differing_columns(symmetries, each) is not None for each in subgoals):
        dropped["subgoals"] = usable.pop("subgoals")[0], "symmetries transform its columns in another way than goals"

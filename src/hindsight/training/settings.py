"""Settings are resolved here, once per run: defaults, then the task's spec, then the recipe, then what the user gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import OptionError, UnknownNameError, nearest
from ..options import AGENT_OPTIONS, STRUCTURE, Settings, StructureSource, build_settings, refuse_unknown, run_options
from ..recipes import Recipe
from ..recipes.fit import Choice, fit
from ..records import GoalSpec
from ..structure import is_flat

Observed = Mapping[str, tuple[Any, str]]
NOTHING: Observed = {}
CHECKED = {"hidden_observation"}  # a check hides columns that hold the goal, wherever the structure comes from
ARGUMENTS = ("agent", "recipe", "check")  # of `HER`: names that may be meant where an option is unknown


def resolve_settings(
    recipe: Recipe, spec: GoalSpec | None, agent: str | None, given: Mapping[str, Any], observed: Observed = NOTHING
) -> Settings:
    """Return the settings of a run.

    recipe: tuned hyperparameters; where it leaves options open to the task, they are chosen from `spec`.
    spec: None for a preview without the environment, in which these options have their defaults.
    agent: the recipe's for the kind of actions unless given.
    given: option names and values of the user, above all others.
    observed: values and reasons found by playing the environment, for options that the recipe leaves open.
    Raises UnknownNameError and OptionError for names and values that are not valid.
    """
    agent = agent or recipe.agent_for(is_discrete=spec is not None and spec.action.n_values is not None)
    known = run_options(agent)
    refuse_unknown(given, [*known, *ARGUMENTS], f"agent {agent!r}")
    _check_names(recipe)
    choices = _choices(recipe, spec, given.get("max_episode_steps"))
    tuned = recipe.tuned_options(agent)
    structure = _structure(recipe.options_for(agent), given, spec)
    left_out = set(STRUCTURE) if structure != "declared" else set()
    tuned = {name: value for name, value in tuned.items() if name not in left_out}
    left_out = set(STRUCTURE) - CHECKED if structure != "inferred" else set()
    chosen = {choice.option: (choice.value, choice.reason) for choice in choices}
    chosen |= {name: found for name, found in observed.items() if name in known and name not in left_out}
    displaced = _displaced({**tuned, **given}, has_extra_reward="extra_reward" in chosen)
    chosen = {name: choice for name, choice in chosen.items() if name not in displaced}
    from_recipe = recipe.general_options(agent) | {name: value for name, (value, _) in chosen.items()} | tuned
    from_recipe = {name: value for name, value in from_recipe.items() if name in known}
    settings = build_settings(agent, recipe.name, from_recipe | dict(given) | {"structure": structure})
    reasons = {name: why for name, (_, why) in chosen.items() if name in known and name not in {**tuned, **given}}
    return replace(settings, from_recipe=from_recipe, reasons=reasons, given=frozenset(given))


def _structure(recipe: Mapping[str, Any], given: Mapping[str, Any], spec: GoalSpec | None) -> StructureSource:
    """Return where the structure of the task comes from, if neither the user nor the recipe says so.

    It is declared if an option declares some of it. It is not inferred if the user took away what the recipe declares, nor
    from images, bits and indices. Raises OptionError if the user wants to infer it there, or says that it is
    declared where it is not.
    """
    source: StructureSource | None = given.get("structure", recipe.get("structure"))
    can_infer = spec is None or is_flat(spec)
    if source == "inferred" and not can_infer:
        raise OptionError(
            "structure='inferred' needs an observation, goals and actions that are flat arrays of floats. Leave it out."
        )
    is_declared = any({**recipe, **given}.get(name) for name in STRUCTURE)
    if source == "declared" and not is_declared:
        raise OptionError(f"structure='declared' needs an option that declares it: {', '.join(STRUCTURE)}. Leave it out.")
    if source is not None:
        return source
    if is_declared:
        return "declared"
    is_taken_away = any(recipe.get(name) for name in STRUCTURE)
    return "inferred" if spec is not None and can_infer and not is_taken_away else "none"


def _displaced(above: Mapping[str, Any], has_extra_reward: bool) -> set[str]:
    """Return the options that are not chosen from the task, because they contradict options above them.

    above: the options of a tuned recipe and of the user. has_extra_reward: whether `extra_reward` is chosen from the task.
    """
    displaced: set[str] = {"extra_reward"} if above.get("subgoals") else set()
    extra_reward = above.get("extra_reward", has_extra_reward and not displaced)
    if above.get("prioritized"):
        displaced |= {"energy_priority", "energy_cap", "energy_remaining"}
    if not above.get("energy_priority", True):
        displaced |= {"energy_cap", "energy_remaining"}
    if above.get("strategy", "future") != "future" or above.get("n_sampled_goal") is not None:
        displaced |= {"relabel", "relabel_schedule"}
    if "relabel" in above or above.get("relabel_at", "sample") != "sample":
        displaced.add("relabel_schedule")
    if {"exploration_decay", "exploration_decay_start"} & set(above):
        displaced |= {"exploration_decay", "exploration_decay_start"}
    if above.get("goal_features", "relative") != "relative":
        displaced.add("hidden_goal")
    if above.get("n_target_critics") is not None:
        displaced.add("n_critics")
    if extra_reward or above.get("relabel_at", "sample") != "sample" or above.get("n_steps", 1) != 1:
        displaced.add("subgoals")
    return displaced


def _choices(recipe: Recipe, spec: GoalSpec | None, limit: Any) -> tuple[Choice, ...]:
    """Return what is chosen from the task. limit: the user's own time limit, or None."""
    if spec is None or not recipe.automatic:
        return ()
    return fit(replace(spec, max_episode_steps=limit) if isinstance(limit, int) else spec)


def _check_names(recipe: Recipe) -> None:
    """Raise UnknownNameError if the recipe names an agent or an option that does not exist."""
    anywhere = {name for agent in AGENT_OPTIONS for name in run_options(agent)}
    refuse_unknown(recipe.options, anywhere, f"recipe {recipe.name!r}")
    for agent, table in recipe.agent_options.items():
        if agent not in AGENT_OPTIONS:
            raise UnknownNameError(
                f"Recipe {recipe.name!r} has a table [{agent}], but a table must be [options] or an agent's name."
                f"{nearest(agent, ['options', *AGENT_OPTIONS])}"
            )
        refuse_unknown(table, run_options(agent), f"recipe {recipe.name!r}, [{agent}]")

"""Settings are resolved here, once per run: defaults, then the task's spec, then the recipe, then what the user gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import OptionError, UnknownNameError, nearest
from ..options import AGENT_OPTIONS, STRUCTURE, Settings, StructureSource, build_settings, refuse_unknown, run_options
from ..recipes import Recipe
from ..recipes.fit import Choice, fit
from ..records import GoalSpec
from ..structure import is_flat
from .contradictions import Chosen, without_contradictions

Observed = Mapping[str, tuple[Any, str]]
NOTHING: Observed = {}
ARGUMENTS = ("agent", "recipe", "check")  # of `HER`: names that may be meant where an option is unknown


def resolve_settings(
    recipe: Recipe,
    spec: GoalSpec | None,
    agent: str | None,
    given: Mapping[str, Any],
    found: Observed = NOTHING,
    checked: Observed = NOTHING,
) -> Settings:
    """Return the settings of a run.

    recipe: tuned hyperparameters; where it leaves options open to the task, they are chosen from `spec`.
    spec: None for a preview without the environment, in which these options have their defaults.
    agent: the recipe's for the kind of actions unless given.
    given: option names and values of the user, above all others.
    found, checked: values and reasons of the search for structure and of the check of the environment. They hold for
        options that neither the user nor a tuned recipe sets. What contradicts those that they set is left out.
    Raises UnknownNameError and OptionError for names and values that are not valid.
    """
    agent = agent or recipe.agent_for(is_discrete=spec is not None and spec.action.n_values is not None)
    known = run_options(agent)
    refuse_unknown(given, [*known, *ARGUMENTS], f"agent {agent!r}")
    _check_names(recipe)
    structure = _structure(recipe, agent, given, spec)
    tuned = _tuned(recipe, agent, structure)
    above = {**tuned, **given}
    observed = {} if recipe.complete else {**checked, **found}
    chosen = {choice.option: (choice.value, choice.reason) for choice in _choices(recipe, spec, given)} | observed
    chosen, dropped = without_contradictions({name: chosen[name] for name in chosen if name in known}, above, spec)
    if not recipe.complete:
        _hide_goals(chosen, checked)
    from_recipe = recipe.general_options(agent) | {name: value for name, (value, _) in chosen.items()} | tuned
    from_recipe = {name: value for name, value in from_recipe.items() if name in known}
    settings = build_settings(agent, recipe.name, from_recipe | dict(given) | {"structure": structure})
    declared = recipe.declared if recipe.complete else [name for name in STRUCTURE if above.get(name)]
    return replace(
        settings,
        from_recipe=from_recipe,
        reasons={name: why for name, (_, why) in chosen.items() if name not in above},
        given=frozenset(given),
        declared=frozenset(declared if structure == "inferred" else ()),
        not_used=tuple(_not_used(observed, dropped, tuned, given)),
    )


def _structure(recipe: Recipe, agent: str, given: Mapping[str, Any], spec: GoalSpec | None) -> StructureSource:
    """Return where the structure of the task comes from: the user says it, else the recipe.

    If neither does, it is declared if options declare some, and there is none otherwise. The same holds for the default
    recipe and images, bits and indices, from which nothing is inferred.
    Raises OptionError if what the user or a tuned recipe says does not fit the options or the task.
    """
    own = recipe.options_for(agent)
    declared = [name for name in STRUCTURE if {**own, **given}.get(name)]
    said: StructureSource | None = given.get("structure") or own.get("structure")
    is_users = bool(given.get("structure"))
    if said == "inferred":
        if spec is None or is_flat(spec):
            _refuse_complete(recipe, is_users)
            return said
        if is_users or not recipe.general:
            raise OptionError(
                "structure='inferred' needs an observation, goals and actions that are flat arrays of floats. Leave it out."
            )
    by_user = [name for name in declared if given.get(name)]
    if said == "none" and is_users and by_user:
        raise OptionError(
            f"structure='none' uses no structure, but {', '.join(by_user)} declares some. Leave out one of them."
        )
    if said == "declared" and not declared and (is_users or not any(own.get(name) for name in STRUCTURE)):
        raise OptionError(f"structure='declared' needs an option that declares it: {', '.join(STRUCTURE)}. Leave it out.")
    if said == "none" and not by_user:
        return said
    return "declared" if declared else "none"


def _refuse_complete(recipe: Recipe, is_users: bool) -> None:
    if is_users and recipe.complete:
        raise OptionError(
            f"The recipe {recipe.name!r} has all options of a run, so nothing is inferred. Leave out structure or recipe."
        )


def _tuned(recipe: Recipe, agent: str, structure: StructureSource) -> dict[str, Any]:
    """Return the tuned options of a recipe. What they declare counts only if the structure is that of the recipe."""
    tuned = recipe.tuned_options(agent)
    if structure == "declared" or structure == tuned.get("structure") == "inferred":
        return tuned
    return {name: value for name, value in tuned.items() if name not in STRUCTURE}


def _hide_goals(chosen: Chosen, checked: Observed) -> None:
    """Add the columns that hold the goal to those that are hidden.

    They predict how a trained policy moves the object, but relabelling does not change them.
    """
    name = "hidden_observation"
    if name in checked:
        columns, why = checked[name]
        others, reason = chosen.get(name, ((), why))
        chosen[name] = tuple(sorted({*columns, *others})), why if reason == why else f"{reason}; {why}"


def _not_used(observed: Observed, dropped: Observed, tuned: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each value that was found by playing, but is not used."""
    above = {**tuned, **given}
    for name, (value, _) in observed.items():
        if name in above:
            own = tuple(above[name]) if isinstance(above[name], list) else above[name]
            if own != value:
                yield f"{name} = {value}, since {'you set' if name in given else 'the recipe sets'} {name} = {own}"
        elif name in dropped:
            lost, why = dropped[name]
            yield f"{name} = {lost}, since {why}"


def _choices(recipe: Recipe, spec: GoalSpec | None, given: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Return what is chosen from the task. given: the options of the user, whose time limit counts."""
    if spec is None or not recipe.automatic:
        return ()
    limit = given.get("max_episode_steps")
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

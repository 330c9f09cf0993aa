"""Resolve the settings of a run: the only module that merges and ranks options.

The values of an option count in this order, each above those before it:

1. the default of its record (`options/`),
2. the general recipe ("default", or the base of an own recipe),
3. what fits the sizes and the time limit of the task (`recipes.fit`),
4. what the check of the environment saw (`envs`),
5. what the steps of the run show about the structure of the task, then how its successes end (`structure`),
6. the tuned recipe,
7. what the user gave.

Sources 3 to 5 propose choices: an option, its value and the reason. Of several choices of one source the last counts: it
knows most. Choices that contradict sources 6 and 7 are left out, and `Settings.not_used` says so. With a choice, those that
need it are left out, and the ones before them count. A complete recipe has all options of a run, so it takes no choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import OptionError, UnknownNameError, nearest
from ..options import (
    AGENT_OPTIONS,
    STRUCTURE,
    Choice,
    ReplayOptions,
    Settings,
    StructureSource,
    build_settings,
    refuse_unknown,
    run_options,
)
from ..recipes import Recipe, fit, fit_discrete
from ..records import GoalSpec
from ..structure import is_flat
from ..task_structure.categories import Categories, is_choice
from ..task_structure.subgoals import Subgoals
from ..task_structure.symmetries import SymmetryGroup

Choices = dict[str, Choice]  # by their options
ARGUMENTS = ("agent", "recipe", "check")  # of `HER`: names that may be meant where an option is unknown
ENERGY = ("energy_cap", "energy_remaining")
DECAY = ("exploration_decay", "exploration_decay_start")
HIDDEN = ("hidden_goal", "hidden_observation")
WORKSPACE = ("lowest_achieved", "highest_achieved", "rest_displacement")
CHECKED_STRUCTURE = ("categories", "observation_keys", "unused_goal")  # what the check of the environment finds of it
ENDS_EARLY = (*WORKSPACE, "training_episode_steps")


@dataclass(frozen=True)
class Found:
    """What a run found out about its task so far.

    structure: what its steps show. endings: how its successes end episodes.
    ends_early: whether training episodes may end before their time limit. False takes back the choices of that.
    """

    structure: tuple[Choice, ...] = ()
    endings: tuple[Choice, ...] = ()
    ends_early: bool = True

    def value(self, option: str, otherwise: Any = None) -> Any:
        """Return what the run found out about an option, `otherwise` if nothing."""
        choice = latest((*self.structure, *self.endings)).get(option)
        return otherwise if choice is None else choice.value

    def with_option(self, option: str, choices: Iterable[Choice]) -> Found:
        """Return this with the choices of one option, or none, in place of those that it has."""
        others = [choice for choice in self.structure if choice.option != option]
        return replace(self, structure=(*others, *(choice for choice in choices if choice.option == option)))

    def choices(self) -> list[Choice]:
        """Return the choices that hold now."""
        return [each for each in (*self.structure, *self.endings) if self.ends_early or each.option not in ENDS_EARLY]


def latest(choices: Iterable[Choice]) -> Choices:
    """Return the last choice of each option: it knows most."""
    return {choice.option: choice for choice in choices}


def resolve_settings(
    recipe: Recipe,
    spec: GoalSpec | None,
    agent: str | None,
    given: Mapping[str, Any],
    found: Found | None = None,
    checked: Iterable[Choice] = (),
) -> Settings:
    """Return the settings of a run.

    recipe: tuned hyperparameters; where it leaves options open to the task, they are chosen from `spec`.
    spec: None for a preview without the environment, in which these options have their defaults.
    agent: the recipe's for the kind of actions unless given.
    given: option names and values of the user, above all others.
    found: what the run found out about the task; None: nothing yet. checked: choices of the check of the environment.
    Raises UnknownNameError and OptionError for names and values that are not valid.
    """
    agent = agent or recipe.agent_for(is_discrete=spec is not None and spec.action.n_values is not None)
    known = run_options(agent)
    refuse_unknown(given, [*known, *ARGUMENTS], f"agent {agent!r}")
    _check_names(recipe)
    checks = () if recipe.complete else tuple(checked)
    categories = _categories(spec, checks)
    structure = _structure(recipe, agent, given, spec, bool(categories))
    tuned = _tuned(recipe, agent, structure, given)
    above = {**tuned, **given}
    if structure != "inferred":
        checks = tuple(choice for choice in checks if choice.option not in CHECKED_STRUCTURE)
    observed = (*checks, *(() if found is None or recipe.complete else found.choices()))
    fitted = tuple(_fitted(recipe, spec, given, above.get("categories", categories), structure == "inferred"))
    chosen, dropped = _usable([choice for choice in (*fitted, *observed) if choice.option in known], above, spec)
    _hide_goals(chosen, dropped, latest(checks))
    values = recipe.general_options(agent) | {name: choice.value for name, choice in chosen.items()} | tuned
    from_recipe = {name: value for name, value in values.items() if name in known}
    settings = build_settings(agent, recipe.name, from_recipe | dict(given) | {"structure": structure})
    declared = recipe.declared if recipe.complete else [name for name in STRUCTURE if above.get(name)]
    return replace(
        settings,
        from_recipe=from_recipe,
        reasons={name: choice.reason for name, choice in chosen.items() if name not in above},
        given=frozenset(given),
        declared=frozenset(declared if structure == "inferred" else ()),
        not_used=tuple(_not_used(latest(observed), dropped, above, given)),
    )


def with_checked(options: ReplayOptions, checked: Iterable[Choice], excluded: Iterable[str] = ()) -> ReplayOptions:
    """Return replay options with what the check of an environment chose where none were given.

    excluded: options that are not chosen, as others contradict them.
    """
    is_open = ReplayOptions.model_fields.keys() - options.model_fields_set - set(excluded)
    return options.replace(**{choice.option: choice.value for choice in checked if choice.option in is_open})


def _categories(spec: GoalSpec | None, checks: Iterable[Choice]) -> tuple[str, ...]:
    """Return the columns with categories: those that the check saw, else those that the spaces declare."""
    seen = latest(checks).get("categories")
    if seen is not None or spec is None:
        return seen.value if seen else ()
    return Categories.of_spaces(spec).texts()


def _structure(
    recipe: Recipe, agent: str, given: Mapping[str, Any], spec: GoalSpec | None, has_categories: bool
) -> StructureSource:
    """Return where the structure of the task comes from: the user says it, else the recipe.

    If neither does, it is declared if options declare some, and there is none otherwise. The same holds for the default
    recipe and images, from which nothing is inferred.
    Raises OptionError if what the user or a tuned recipe says does not fit the options or the task.
    """
    own = recipe.options_for(agent)
    declared = [name for name in STRUCTURE if {**own, **given}.get(name)]
    said: StructureSource | None = given.get("structure") or own.get("structure")
    is_users = bool(given.get("structure"))
    if said == "inferred":
        if spec is None or is_flat(spec) or is_choice(spec.goal) or has_categories:
            if is_users and recipe.complete:
                raise OptionError(
                    f"The recipe {recipe.name!r} has all options of a run, so nothing is inferred. Leave out structure or "
                    f"recipe."
                )
            return said
        if is_users or not recipe.general:
            raise OptionError(
                "Nothing can be inferred here: that needs an observation and goals that are flat arrays of floats, and "
                "actions that are such arrays or Discrete. Return such arrays, or leave out structure='inferred'."
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


def _tuned(recipe: Recipe, agent: str, structure: StructureSource, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tuned options of a recipe. What they declare counts only if the structure is that of the recipe.

    Columns that it hides count only where the options of the user leave it the differences that show the same.
    """
    tuned = recipe.tuned_options(agent)
    if not _sees_differences(given):
        tuned = {name: value for name, value in tuned.items() if name not in HIDDEN}
    if structure == "declared" or structure == tuned.get("structure") == "inferred":
        return tuned
    return {name: value for name, value in tuned.items() if name not in STRUCTURE}


def _sees_differences(options: Mapping[str, Any]) -> bool:
    """Return whether networks see the difference of goal and achieved goal, unless other options say so."""
    return bool(options.get("goal_features", "relative") == "relative")


def _hide_goals(chosen: Choices, dropped: Choices, checks: Choices) -> None:
    """Add the columns that hold the goal to those that are hidden, whatever else the networks see of the goal.

    They predict how a trained policy moves the object, but relabelling does not change them.
    """
    if seen := checks.get("hidden_observation"):
        other = chosen.get("hidden_observation", seen._replace(value=()))
        reason = seen.reason if other.reason == seen.reason else f"{other.reason}; {seen.reason}"
        chosen["hidden_observation"] = Choice(seen.option, tuple(sorted({*seen.value, *other.value})), reason)
        if dropped.get("hidden_observation", other).value == seen.value:
            dropped.pop("hidden_observation", None)


def _not_used(observed: Choices, dropped: Choices, above: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each value that was found by playing, but is not used."""
    for name, choice in observed.items():
        if name in above:
            own = tuple(above[name]) if isinstance(above[name], list) else above[name]
            if own != choice.value:
                yield f"{name} = {choice.value}, since {'you set' if name in given else 'the recipe sets'} {name} = {own}"
        elif name in dropped:
            yield f"{name} = {dropped[name].value}, since {dropped[name].reason}"


def _fitted(
    recipe: Recipe, spec: GoalSpec | None, given: Mapping[str, Any], categories: Sequence[str], is_inferred: bool
) -> Iterable[Choice]:
    """Return what is chosen from the sizes of the task and, if structure is inferred, from its categories.

    given: the options of the user, whose time limit counts.
    """
    if spec is None or not recipe.automatic:
        return ()
    limit = given.get("max_episode_steps")
    spec = spec.limited(limit if isinstance(limit, int) else None)  # options are validated later
    return (*fit(spec), *fit_discrete(spec, categories)) if is_inferred else fit(spec)


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


def _usable(choices: Sequence[Choice], above: Mapping[str, Any], spec: GoalSpec | None) -> tuple[Choices, Choices]:
    """Return the choices that are used, and those that contradict other options, with the reason.

    choices: what counts more comes later. above, spec: see `without_contradictions`.
    """
    unused: set[str] = set()  # options that are off, though choices need them
    while True:
        chosen, dropped = without_contradictions(latest(each for each in choices if each.needs not in unused), above, spec)
        needed = {choice.needs for choice in chosen.values() if choice.needs}
        off = {name for name in needed if not above.get(name, name in chosen)}
        if not off:
            return chosen, dropped
        unused |= off


def without_contradictions(
    chosen: Mapping[str, Choice], above: Mapping[str, Any], spec: GoalSpec | None
) -> tuple[Choices, Choices]:
    """Return the choices that can be used, and the others, with the reason why they cannot.

    above: options of the recipe and of the user, which stay. spec: the task.
    """
    usable, dropped = dict(chosen), Choices()
    for names, why in _contradictions(chosen, above):
        dropped |= {name: usable.pop(name)._replace(reason=why) for name in names if name in usable}
    if spec is not None and "symmetries" in usable and ("subgoals" in above or "subgoals" in usable):
        _keep_subgoals(above["subgoals"] if "subgoals" in above else usable["subgoals"].value, usable, dropped, spec)
    if spec is not None and "symmetries" in above and "subgoals" in usable:
        _keep_symmetries(above["symmetries"], usable, dropped, spec)
    return usable, dropped


def _contradictions(chosen: Mapping[str, Choice], above: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield names of chosen options that cannot be used, and why."""
    if above.get("subgoals"):
        yield ("extra_reward", "n_waypoints"), "subgoals exclude it"
    if above.get("n_waypoints"):
        yield ("subgoals",), "n_waypoints excludes it"
    has_extra_reward = above.get("extra_reward", "extra_reward" in chosen and not above.get("subgoals"))
    if has_extra_reward or above.get("relabel_at", "sample") != "sample" or above.get("n_steps", 1) != 1:
        yield ("subgoals",), "extra_reward, relabel_at and n_steps exclude it"
    if above.get("demonstrations"):
        yield ("observation_keys",), "demonstrations have the observations of the environment, and nothing appended"
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
    if not _sees_differences(above):
        yield HIDDEN, "networks see differences only if goal_features is relative"
    yield from _without_differences(chosen, above)


def _without_differences(chosen: Mapping[str, Choice], above: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what was found on the condition that the networks see differences that they do not see.

    Columns are hidden where differences say the same, and symmetries are tested without the hidden columns.
    """
    if "hidden_observation" in above:
        return
    needed = chosen["column_differences"].value if "column_differences" in chosen else ()
    if missing := set(needed) - set(above.get("column_differences", needed)):
        yield ("hidden_observation", "symmetries"), f"column_differences lacks {', '.join(sorted(missing))}"


def _keep_subgoals(texts: Any, usable: Choices, dropped: Choices, spec: GoalSpec) -> None:
    """Drop the symmetries that do not transform the columns of these subgoals as they transform goals."""
    subgoals = Subgoals(texts, spec)
    if subgoals.has_objects:  # its samples are transformed before they get goals of subgoals
        return
    found = usable.pop("symmetries")
    fits = {
        text: all(SymmetryGroup([text], spec).differing_columns(each) is None for each in subgoals) for text in found.value
    }
    kept, others = (tuple(text for text in found.value if fits[text] is is_kept) for is_kept in (True, False))
    if kept or not others:
        usable["symmetries"] = found._replace(value=kept)
    if others:
        why = "subgoals name columns that are transformed in another way than goals"
        dropped["symmetries"] = Choice("symmetries", others, why)


def _keep_symmetries(texts: Any, usable: Choices, dropped: Choices, spec: GoalSpec) -> None:
    """Drop the subgoals if these symmetries do not transform their columns as they transform goals."""
    subgoals, symmetries = Subgoals(usable["subgoals"].value, spec), SymmetryGroup(texts, spec)
    if not subgoals.has_objects and any(symmetries.differing_columns(each) is not None for each in subgoals):
        why = "symmetries transform its columns in another way than goals"
        dropped["subgoals"] = usable.pop("subgoals")._replace(reason=why)

"""Recipes: sets of tuned hyperparameters, one TOML file per family of environments; and options that fit other tasks."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from ..errors import FileError, OptionError
from ..options import Choice, OptionRecord, RolloutOptions
from ..records import ArraySpec, GoalSpec
from ..task_structure.categories import is_choice
from .files import RECIPES, names_in, read_toml
from .presets import LONGEST_HORIZON

MEDIUM_TASK = 100  # largest number of inputs and outputs for networks of 2x128
# per step, of these networks. With 2, FetchPush takes 1.3 times as many steps (medians of three seeds), NoisyTable 1.9
MEDIUM_UPDATES = 4
# updates per step for choices and goals that are no vectors: with 4, a 6x6 push-the-box grid is learned more slowly. Six of
# seven tasks with choices and vectors have a higher mean success in 12,000 steps with 4.
MOST_GRID_UPDATES = 2
WARM_UP_EPISODES = 5  # random episodes at the start, from which the normalizer is estimated
# over which the probability of random Discrete actions decreases: with 250, five of five such tasks are learned more slowly
EXPLORATION_EPISODES = 80
PLANNED_UPDATES = 0.1  # of the others; with all of them, grids and puzzles need as many steps, and twice the time
MOST_EXPLORATION = 50_000  # environment steps
FITTED_DISCRETE = ("eps_steps", "energy_priority", "energy_remaining")
FITTED = (
    "discount",
    "hidden",
    "updates_per_step",
    "critic_layer_norm",
    "random_steps",
    "eval_every",
    "goal_features",
    *FITTED_DISCRETE,
)
EVALUATE_AFTER = 50  # episodes
OTHER_GOALS = "future=0.4,random=0.4"  # goals of which there are few: those of other episodes are as useful as its own
FEWEST_EVAL_STEPS, MOST_EVAL_STEPS = 250, 5_000  # between evaluations
SHORTEST_HORIZON = 10  # steps
# of a time limit: how far continuous actions look ahead. Scripts of the open tasks need 0.13 to 0.56 of it (medians of 30
# episodes). With all of it one step counts too little beside the error of large values: policies stop beside their goals
HORIZON = 0.4


class Recipe(OptionRecord):
    """Tuned hyperparameters for a family of environments. Values that the user gives override them.

    environments: patterns of the ids that it is chosen for.
    agent: the agent that it was tuned for; discrete_agent: instead of it for Discrete actions.
    options: for every agent that has them; agent_options: by agent, above `options`.
    automatic: options that it leaves open are chosen from the task (see `recipes.fit`).
    general: its options suit tasks of any kind, so what is chosen from the task is above them.
    complete: it has all options of a run, so nothing is chosen from the task, and nothing is looked for.
    declared: of a complete recipe with an inferred structure: the options that a person declared.
    base: the recipe whose options hold where this one says nothing. Where the structure comes from, a recipe says itself.
    """

    name: str
    environments: tuple[str, ...] = ()
    agent: str = "td3"
    options: dict[str, Any] = Field(default_factory=dict)
    agent_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    discrete_agent: str | None = None
    automatic: bool = False
    general: bool = False
    complete: bool = False
    declared: tuple[str, ...] = ()
    base: Recipe | None = None

    def fits(self, environment_id: str) -> bool:
        """Return whether one of its patterns matches the id."""
        return any(fnmatch.fnmatchcase(environment_id, pattern) for pattern in self.environments)

    def agent_for(self, is_discrete: bool) -> str:
        """Return the agent for a task with or without Discrete actions."""
        return self.discrete_agent if self.discrete_agent and is_discrete else self.agent

    def general_options(self, agent: str) -> dict[str, Any]:
        """Return the options for `agent` that suit tasks of any kind: those of the base, or its own if it is general."""
        if self.general:
            return self.options | self.agent_options.get(agent, {})
        base = self.base.general_options(agent) if self.base else {}
        return {name: value for name, value in base.items() if name != "structure"}

    def tuned_options(self, agent: str) -> dict[str, Any]:
        """Return the options for `agent` that were tuned: `options`, then the agent's own."""
        return {} if self.general else self.options | self.agent_options.get(agent, {})

    def options_for(self, agent: str) -> dict[str, Any]:
        """Return all options for `agent`, the tuned ones above the general ones."""
        return self.general_options(agent) | self.tuned_options(agent)

    def environment_arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of the environment: the user's `env_options`, or else the recipe's."""
        return RolloutOptions(env_options=given.get("env_options", self.options.get("env_options", ()))).env_arguments


# of a file; all others are tables of agents
RECIPE_KEYS = tuple(name for name in Recipe.model_fields if name not in ("name", "agent_options", "base"))


def recipe_names() -> list[str]:
    """Return the names of the built-in recipes."""
    return names_in(RECIPES)


def choose_recipe(name_or_path: str | None, environment_id: str | None) -> Recipe:
    """Return the recipe with this name or path; without one, the recipe for this environment."""
    return load_recipe(name_or_path) if name_or_path else find_recipe(environment_id)


def find_recipe(environment_id: str | None) -> Recipe:
    """Return the recipe whose patterns match the id, "module:" before it left out; "default" if none does."""
    env_id = (environment_id or "").rpartition(":")[2]
    for name in recipe_names():
        recipe = load_recipe(name)
        if recipe.fits(env_id):
            return recipe
    return load_recipe("default")


def load_recipe(name_or_path: str) -> Recipe:
    """Return a built-in recipe by its name, or the recipe in a .toml file by its path.

    A file is laid over the recipe "default" and its automatic settings unless it has `automatic = false`.
    Raises UnknownNameError and FileError.
    """
    name, data = read_toml("recipe", name_or_path, RECIPES)
    known = {key: data.pop(key) for key in RECIPE_KEYS if key in data}
    if name_or_path.endswith(".toml") and known.get("automatic") is not False:
        base = load_recipe("default")
        agents = {} if "agent" in known else {"agent": base.agent, "discrete_agent": base.discrete_agent}
        known = {"automatic": True, "base": base} | agents | known
    for key, table in data.items():
        if not isinstance(table, dict):
            raise FileError(f"{name_or_path}: `{key}` must be a table of options, or stand in [options], got {table!r}.")
    try:
        return Recipe(name=name, agent_options=data, **known)
    except OptionError as problem:
        raise FileError(f"{name_or_path} is not a recipe. {problem}") from None


def fit(spec: GoalSpec) -> tuple[Choice, ...]:
    """Return the options chosen for a task."""
    choices = (_discount(spec), *_networks(spec), _random_steps(spec), _eval_every(spec), *_goal_features(spec.goal))
    return (*choices, *_discrete(spec)) if spec.action.n_values else choices


def fit_discrete(spec: GoalSpec, categories: Sequence[str]) -> Iterator[Choice]:
    """Yield the options chosen for a grid or a puzzle. categories: its columns with categories, as texts."""
    if categories:
        yield Choice("categories", tuple(categories), "these columns hold whole numbers of small range")
    if is_choice(spec.goal) or any(text.startswith("g") for text in categories):
        yield Choice("relabel", OTHER_GOALS, "goals are categories, bits or indices")
        seen = spec.observation
        is_whole = is_choice(seen) or (np.dtype(seen.dtype).kind in "iu" and len(seen.shape) == 1)
        if spec.action.n_values and (is_whole or any(text.startswith("o") for text in categories)):
            yield Choice(
                "plan_states", True, "states and goals are categories, bits or indices, which may recur or follow rules"
            )
            why = "while paths are planned, the networks act only where none is known"
            yield Choice("planned_updates", PLANNED_UPDATES, why, needs="plan_states")


def _discount(spec: GoalSpec) -> Choice:
    """Return 1 - 1/h for a horizon of h steps: a fraction of the time limit, or all of it for Discrete actions."""
    limit = spec.max_episode_steps
    if limit is None:
        return Choice("discount", 0.98, "no time limit")
    horizon = min(max(limit if spec.action.n_values else HORIZON * limit, SHORTEST_HORIZON), LONGEST_HORIZON)
    return Choice("discount", round(1 - 1 / horizon, 3), f"{horizon:g} steps ahead, in episodes of {limit} steps")


def _networks(spec: GoalSpec) -> Iterator[Choice]:
    """Yield networks for the size of the task, and as many updates as their speed allows.

    With 2x64, which take less time, an arm that pushes a puck had 9 % instead of 79 % after 20,000 steps, and a disc that
    pushes two pucks 4 % instead of 66 %.
    """
    observation, goal, action = (part.n_values or part.size for part in (spec.observation, spec.goal, spec.action))
    size = observation + 2 * goal + action
    hidden, updates = ((128, 128), MEDIUM_UPDATES) if size <= MEDIUM_TASK else ((256, 256), 1)
    if spec.action.n_values and not _are_vectors(spec.goal):
        updates = min(updates, MOST_GRID_UPDATES)
    sizes = f"observation {observation}, goal {goal}, action {action}"
    yield Choice("hidden", hidden, sizes)
    yield Choice("updates_per_step", updates, "the smaller the networks, the more updates")
    yield Choice("critic_layer_norm", updates > 1, "for more than one update per step")


def _steps_of(episodes: int, spec: GoalSpec) -> int:
    """Return the steps of so many episodes; without a time limit, of 100 steps each."""
    return episodes * (spec.max_episode_steps or 100)


def _episodes_of(steps: int, spec: GoalSpec) -> str:
    """Return in words how many episodes have so many steps."""
    n = round(steps / _steps_of(1, spec))
    return "less than one episode" if n == 0 else f"about {n} episode{'s' * (n > 1)}"


def _random_steps(spec: GoalSpec) -> Choice:
    steps = min(max(_steps_of(WARM_UP_EPISODES, spec), 200), 500)
    return Choice("random_steps", steps, f"{_episodes_of(steps, spec)}, for the normalizer")


def _eval_every(spec: GoalSpec) -> Choice:
    steps = min(max(_steps_of(EVALUATE_AFTER, spec), FEWEST_EVAL_STEPS), MOST_EVAL_STEPS)
    return Choice("eval_every", steps, _episodes_of(steps, spec))


def _goal_features(goal: ArraySpec) -> Iterator[Choice]:
    """Yield how goals are compared: vectors by their difference, bits and indices by equality, images not at all."""
    if _are_vectors(goal):
        yield Choice("goal_features", "relative", "goals are vectors")
    elif is_choice(goal):
        yield Choice("goal_features", "agreement", "goals are bits or indices")


def _are_vectors(goal: ArraySpec) -> bool:
    """Return whether goals are vectors of numbers, not bits, indices or pixels."""
    return goal.dtype.startswith("float")


def _discrete(spec: GoalSpec) -> Iterator[Choice]:
    """Yield what Discrete actions need. At first the policy repeats one action, so that random ones find more goals."""
    steps = min(_steps_of(EXPLORATION_EPISODES, spec), MOST_EXPLORATION)
    yield Choice("eps_steps", steps, f"random actions decrease over {EXPLORATION_EPISODES} episodes")
    if _are_vectors(spec.goal):
        yield Choice("energy_priority", True, "goals are vectors: episodes that move them farther are sampled more often")
        yield Choice("energy_remaining", True, "steps after the last movement help little")

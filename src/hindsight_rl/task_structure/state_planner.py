"""Planning over states: those that were visited, and where rules predict what an action does, those that can be reached.

Grids and puzzles return to the same states. There the observed transitions are a Markov decision process, and value
iteration finds the action with the highest expected return for any visited goal. An action that was never tried in a
state can count as a success, which leads an episode to what is not known yet (R-max, Brafman and Tennenholtz 2002), or as
a failure, which leaves only paths that were made. Frequencies serve noisy tasks too, where no action has a certain result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import InputError
from ..records import Array, Episode
from .rules import Rules
from .state_columns import find_state_columns
from .tabular_model import CONVERGED, OFTEN, VISITED, TabularModel, states_of
from .waypoints import is_planning_due

RULES = ("rule_nodes", "rule_changes", "rule_ranges")
SEEN = ("seen_states", "seen_transitions", "seen_counts")  # as VISITED, with all columns; empty if all are planned with
KEPT_COLUMNS, COUNTS = "state_columns", "prediction_counts"
MOST_PLANNED = 20_000  # visited states; with more, value iteration takes longer than the updates of an episode
LEAST_STEPS, RARELY = 2_000, 0.2  # after so many steps, with fewer known states than this fraction, and no rules: give up
FIRST_RULES = 250  # steps
LEAST_PREDICTED = 20  # steps, before rules are used or given up
ACCURATE, INACCURATE = 0.85, 0.5  # of the predicted steps: rules are used, and given up
CHANCE = 0.02  # of repeated actions with another result than usual: more is a risk, which rules do not show


class StatePlanner:
    """Finds actions toward goals from the transitions of a grid or a puzzle.

    sizes: columns of a state (observation, then achieved goal), columns of the achieved goal, and actions.
    columns: of a state, those that are planned with, ascending. seen: the visited states with all columns.
    visited: the visited states with these columns. rules: what was learned of them; empty if they do not predict new steps.

    If states do not recur and rules do not predict steps, it gives up: it is empty from then on, and learns no more.
    """

    def __init__(self, sizes: tuple[int, int, int]) -> None:
        self.sizes, self.columns = sizes, list(range(sizes[0]))
        self.seen = self.visited = TabularModel(*sizes)
        self.rules = Rules.none(sizes[0])
        self._right = self._predicted = 0
        self._reachable: TabularModel | None = None
        self._has_blocked = False

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], sizes: tuple[int, int, int]) -> StatePlanner:
        """Return the planner whose `arrays` these are. Raises InputError if they are not valid."""
        planner = cls(sizes)
        planner._restore_columns_and_rules(arrays)
        planner.seen = planner.visited = _restored(arrays, VISITED, planner.planned_sizes)
        if len(planner.columns) < sizes[0]:
            planner.seen = _restored(arrays, SEEN, sizes)
        planner._right, planner._predicted = map(int, arrays[COUNTS])
        return planner

    @classmethod
    def from_plan(cls, arrays: Mapping[str, Array], sizes: tuple[int, int, int]) -> StatePlanner:
        """Return a planner that acts by a `plan`, and does not learn. Raises InputError if it is not valid."""
        planner = cls(sizes)
        planner._restore_columns_and_rules(arrays)
        states, transitions = (arrays[name] for name in VISITED[:2])
        if len(states):
            planner.visited = TabularModel.restore(states, transitions, planner.planned_sizes)
        return planner

    def _restore_columns_and_rules(self, arrays: Mapping[str, Array]) -> None:
        n, n_goal_columns, n_actions = self.sizes
        columns = arrays[KEPT_COLUMNS] if len(arrays[KEPT_COLUMNS]) else np.arange(n, dtype=np.int32)
        is_valid = columns.dtype == np.int32 and np.isin(columns, np.arange(n)).all() and (np.diff(columns) > 0).all()
        if not is_valid or columns[-n_goal_columns:].tolist() != self.columns[-n_goal_columns:]:
            raise InputError(
                f"Expected ascending columns of a state and all of its goal for `{KEPT_COLUMNS}`, got {columns}."
            )
        self.columns = columns.tolist()
        nodes, changes, ranges = (arrays[name] for name in RULES)
        if not len(nodes):
            return
        if ranges.shape != (2, len(columns)):
            raise InputError(f"Expected shape (2, {len(columns)}) for `rule_ranges`, got {ranges.shape}.")
        self.rules = Rules(nodes, changes, *ranges)
        self.rules.check(len(columns), n_actions)

    def arrays(self) -> dict[str, Array]:
        """Return copies of everything that the planner holds."""
        seen = TabularModel(*self.sizes) if self.seen is self.visited else self.seen
        of_seen = dict(zip(SEEN, seen.arrays().values(), strict=True))
        counts = np.array([self._right, self._predicted], np.int64)
        return {**self.visited.arrays(), **of_seen, **self._columns_and_rules(), COUNTS: counts}

    def _columns_and_rules(self) -> dict[str, Array]:
        rules = self.rules.nodes, self.rules.changes, np.stack([self.rules.lowest, self.rules.highest])
        arrays = {name: array.copy() for name, array in zip(RULES, rules, strict=True)}
        return {KEPT_COLUMNS: np.array(self.columns, np.int32), **arrays}

    def plan(self) -> dict[str, Array]:
        """Return what a policy needs to plan: the visited states if they recur, the rules if they predict well.

        Rules expect the usual result, whatever else may happen: beside states that recur they are left out where chance
        decides.
        """
        arrays = self.visited.arrays() | self._columns_and_rules()
        uses_rules = self.predicts and not (self.recurs and self.visited.chance > CHANCE)
        kept = (VISITED[:2] if self.recurs else ()) + (RULES if uses_rules else ()) + (KEPT_COLUMNS,)
        return {name: arrays[name] if name in kept else arrays[name][:0] for name in (*VISITED[:2], *RULES, KEPT_COLUMNS)}

    @property
    def planned_sizes(self) -> tuple[int, int, int]:
        """Return the sizes of `visited`, as `sizes`."""
        return len(self.columns), *self.sizes[1:]

    def state_of(self, observation: Array, achieved_goal: Array) -> Array:
        """Return the columns of a state that are planned with, (n_columns,) int32."""
        state = np.concatenate([np.ravel(observation), np.ravel(achieved_goal)]).astype(np.int32)
        return state if len(self.columns) == self.sizes[0] else state[self.columns]

    @property
    def recurs(self) -> bool:
        """Whether states are visited again often enough to plan over them."""
        return self.visited.is_used and self.visited.n_states <= MOST_PLANNED

    @property
    def predicts(self) -> bool:
        """Whether the rules predicted nearly all steps since they were learned."""
        is_tested = len(self.rules.nodes) > 0 and self._predicted >= LEAST_PREDICTED
        return is_tested and self._right >= ACCURATE * self._predicted

    def add(self, episode: Episode, first_action: int) -> None:
        """Add the steps of an episode, and learn rules at each tenth more. first_action: number of action 0."""
        if self.seen.is_given_up:
            return
        states, action = states_of(episode), episode.action.ravel().astype(np.int64) - first_action
        if states is None:
            self._give_up()
            return
        self._test_rules(states[:, self.columns], action)
        if episode.terminated and episode.success is not None and not episode.success:  # stored ones do not say it
            states, action = self._with_end(states, action)
        if self.visited is not self.seen:
            self.visited.add(states[:, self.columns], action)
        if self.visited is self.seen or self.seen.n_states < MOST_PLANNED:  # so many show which columns are needless
            self.seen.add(states, action)
        steps = self.visited.steps
        if not self.seen.is_given_up and steps >= FIRST_RULES and is_planning_due(steps, len(episode)):
            self._choose_columns()
            self._learn_rules()
        is_rare = steps >= LEAST_STEPS and self.visited.known_fraction < RARELY
        if self.seen.is_given_up or (is_rare and self._right <= INACCURATE * self._predicted):
            self._give_up()

    def _with_end(self, states: Array, action: Array) -> tuple[Array, Array]:
        """Return the steps of an episode that failed, and one of each action that changes nothing: no path leads on.

        Rules would lead through a pit else, as no action is ever tried in it. Where the last step changed nothing, as at a
        wall that ends the episode, that state has other actions.
        """
        if len(action) and (states[-1] == states[-2]).all():
            return states, action
        every = np.arange(self.sizes[2], dtype=action.dtype)
        return np.concatenate([states, np.repeat(states[-1:], len(every), 0)]), np.concatenate([action, every])

    def _give_up(self) -> None:
        self.seen.give_up()
        self.visited.give_up()
        self.rules = Rules.none(len(self.columns))

    def _choose_columns(self) -> None:
        """Plan without needless columns if states do not recur with all of them, and at most half as many differ then."""
        if self.visited is self.seen and self.recurs:
            return
        states, transitions, _ = self.seen.arrays().values()
        columns, every = find_state_columns(states, transitions, self.sizes[1]), list(range(self.sizes[0]))
        if len(np.unique(states[:, columns], axis=0)) > OFTEN * len(states):
            columns = every
        if columns != self.columns:
            self.columns = columns
            self.visited = self.seen if columns == every else self.seen.without_columns(columns)
            self.rules, self._right, self._predicted = Rules.none(len(columns)), 0, 0

    def _test_rules(self, states: Array, action: Array) -> None:
        """Count which of the steps the rules predict. What is counted fades, so that rules that became right are used."""
        if len(self.rules.nodes):
            is_right = (self.rules.predict(states[:-1], action) == states[1:]).all(1)
            # an episode that pushes against what it does not expect repeats one error: each step counts once
            _, first = np.unique(np.column_stack([states[:-1], action]), axis=0, return_index=True)
            self._right += int(is_right[first].sum())
            self._predicted += len(first)

    def _learn_rules(self) -> None:
        states, transitions, _ = self.visited.arrays().values()
        if len(states):
            self.rules = Rules.fit(states, transitions, self.sizes[2])
            self._right, self._predicted = self._right // 2, self._predicted // 2

    def action(self, observation: Array, achieved_goal: Array, goal: Array, discount: float) -> int:
        """Return the best action for a goal, NO_PATH if no path leads there. The shortest counts, visited or predicted."""
        state = self.state_of(observation, achieved_goal)
        value, action = self.visited.known_action(state, goal, discount)
        if len(self.rules.nodes):
            expected, predicted = self.reachable(state, discount).known_action(state, goal, discount)
            action = predicted if expected > value + CONVERGED else action
        return action

    def reachable(self, state: Array, discount: float) -> TabularModel:
        """Return a model of the states that the rules lead to from a state, within 1 / (1 - discount) steps."""
        if self._reachable is None or self._reachable.find(state) is None:
            states, transitions = self.rules.reach(state, self.sizes[2], round(1 / (1 - discount)))
            self._reachable = TabularModel.restore(states, transitions, self.planned_sizes)
        return self._reachable

    def begin_episode(self) -> None:
        """Forget the actions that changed nothing."""
        if self._has_blocked:
            self._reachable, self._has_blocked = None, False

    def add_blocked(self, observation: Array, achieved_goal: Array, action: int) -> None:
        """Count an action that changed nothing, beside the prediction of the rules, until the next episode begins.

        Rules do not know every wall: those of a map that is new in each episode. action: counted from 0.
        """
        state = self.state_of(observation, achieved_goal)
        if self._reachable is None or (number := self._reachable.find(state)) is None:
            return
        if (self.rules.predict(state[None], np.array([action])) != state).any():  # else, as at a goal, nothing is new
            self._reachable.count(number, action, number)
            self._has_blocked = True


def _restored(arrays: Mapping[str, Array], names: Sequence[str], sizes: tuple[int, int, int]) -> TabularModel:
    states, transitions, counts = (arrays[name] for name in names)
    return TabularModel.restore(states, transitions, sizes, counts)

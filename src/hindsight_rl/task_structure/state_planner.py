"""Planning over states: those that were visited, and where rules predict what an action does, those that can be reached."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import InputError
from ..records import Array, Episode
from .rules import Rules
from .tabular_model import CONVERGED, TabularModel
from .waypoints import is_planning_due

VISITED = ("visited_states", "transitions", "state_counts")
RULES = ("rule_nodes", "rule_changes", "rule_ranges")
COUNTS = "prediction_counts"
MOST_PLANNED = 20_000  # visited states; with more, value iteration takes longer than the updates of an episode
LEAST_STEPS, RARELY = 2_000, 0.2  # after so many steps, with fewer known states than this fraction, and no rules: give up
FIRST_RULES = 250  # steps
LEAST_PREDICTED = 20  # steps, before rules are used or given up
ACCURATE, INACCURATE = 0.85, 0.5  # of the predicted steps: rules are used, and given up
BITS = 1  # largest range of a column: the networks compare bits, and search would reach too many states


class StatePlanner:
    """Finds actions toward goals from the transitions of a grid or a puzzle.

    sizes: columns of a state (observation, then achieved goal), columns of the achieved goal, and actions.
    visited: the visited states. rules: what was learned of them; empty if they do not predict new steps.

    If states do not recur and rules do not predict steps, it gives up: it is empty from then on, and learns no more.
    """

    def __init__(self, sizes: tuple[int, int, int]) -> None:
        self.sizes = sizes
        self.visited, self.rules = TabularModel(*sizes), Rules.none(sizes[0])
        self._right = self._predicted = 0
        self._reachable: TabularModel | None = None

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], sizes: tuple[int, int, int]) -> StatePlanner:
        """Return the planner whose `arrays` these are, or those of `plan`. Raises InputError if they are not valid."""
        planner = cls(sizes)
        states, transitions, *counts = (arrays[name] for name in VISITED if name in arrays)
        if counts or len(states):
            planner.visited = TabularModel.restore(states, transitions, sizes, *counts)
        nodes, changes, ranges = (arrays[name] for name in RULES)
        if len(nodes):
            if ranges.shape != (2, sizes[0]):
                raise InputError(f"Expected shape (2, {sizes[0]}) for `rule_ranges`, got {ranges.shape}.")
            planner.rules = Rules(nodes, changes, *ranges)
            planner.rules.check(sizes[0], sizes[2])
        if COUNTS in arrays:
            planner._right, planner._predicted = map(int, arrays[COUNTS])
        return planner

    def arrays(self) -> dict[str, Array]:
        """Return copies of everything that the planner holds."""
        rules = self.rules.nodes, self.rules.changes, np.stack([self.rules.lowest, self.rules.highest])
        return {
            **self.visited.arrays(),
            **{name: array.copy() for name, array in zip(RULES, rules, strict=True)},
            COUNTS: np.array([self._right, self._predicted], np.int64),
        }

    def plan(self) -> dict[str, Array]:
        """Return what a policy needs to plan: the visited states if they recur, the rules if they predict well."""
        arrays = self.arrays()
        kept = (VISITED[:2] if self.recurs else ()) + (RULES if self.predicts else ())
        return {name: arrays[name] if name in kept else arrays[name][:0] for name in (*VISITED[:2], *RULES)}

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
        if self.visited.is_given_up:
            return
        self._test_rules(episode, first_action)
        self.visited.add(episode, first_action)
        steps = self.visited.steps
        if steps >= FIRST_RULES and is_planning_due(steps, len(episode)):
            self._learn_rules()
        is_rare = steps >= LEAST_STEPS and self.visited.known_fraction < RARELY
        if self.visited.is_given_up or (is_rare and self._right <= INACCURATE * self._predicted):
            self.visited.give_up()
            self.rules = Rules.none(self.sizes[0])

    def _test_rules(self, episode: Episode, first_action: int) -> None:
        """Count which of the steps the rules predict. What is counted fades, so that rules that became right are used."""
        if len(self.rules.nodes) and (states := self.visited.states_of(episode)) is not None:
            action = episode.action.ravel().astype(np.int64) - first_action
            is_right = (self.rules.predict(states[:-1], action) == states[1:]).all(1)
            # an episode that pushes against what it does not expect repeats one error: each step counts once
            _, first = np.unique(np.column_stack([states[:-1], action]), axis=0, return_index=True)
            self._right += int(is_right[first].sum())
            self._predicted += len(first)

    def _learn_rules(self) -> None:
        states, transitions, _ = self.visited.arrays().values()
        if len(states) and np.ptp(states, axis=0).max() > BITS:
            self.rules = Rules.fit(states, transitions, self.sizes[2])
            self._right, self._predicted = self._right // 2, self._predicted // 2

    def action(self, observation: Array, achieved_goal: Array, goal: Array, discount: float) -> int:
        """Return the best action for a goal, NO_PATH if no path leads there. The shortest counts, visited or predicted."""
        value, action = self.visited.known_action(observation, achieved_goal, goal, discount)
        if len(self.rules.nodes):
            reachable = self.reachable(observation, achieved_goal, discount)
            expected, predicted = reachable.known_action(observation, achieved_goal, goal, discount)
            action = predicted if expected > value + CONVERGED else action
        return action

    def reachable(self, observation: Array, achieved_goal: Array, discount: float) -> TabularModel:
        """Return a model of the states that the rules lead to from here, within 1 / (1 - discount) steps."""
        if self._reachable is None or self._reachable.find(observation, achieved_goal) is None:
            state = np.concatenate([np.ravel(observation), np.ravel(achieved_goal)]).astype(np.int32)
            states, transitions = self.rules.reach(state, self.sizes[2], round(1 / (1 - discount)))
            self._reachable = TabularModel.restore(states, transitions, self.sizes)
        return self._reachable

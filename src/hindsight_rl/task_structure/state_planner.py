"""Planning over states: those that were visited, and where rules predict what an action does, those that can be reached.

Grids and puzzles return to the same states. There the observed transitions are a Markov decision process, and value
iteration finds the action with the highest expected return for any visited goal. An action that was never tried in a
state can count as a success, which leads an episode to what is not known yet (R-max, Brafman and Tennenholtz 2002), or as
a failure, which leaves only paths that were made. Frequencies serve noisy tasks too, where no action has a certain result.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from ..errors import InputError
from ..records import Array, Episode
from .rules import Rules
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
MOST_STATES = 100_000  # a few MB
OFTEN = 0.5  # fraction of the steps that led to a known state, from which on the model is used
LARGEST_STATE = 2**31 - 1  # of a state's whole numbers
MOST_PLANNED_GOALS = 100  # whose values are kept
NO_PATH = -1  # no known path leads to the goal
NO_COUNTS = np.zeros(3, np.int64)
CONVERGED = 1e-3  # change of a sweep, where a failed step costs 1
HORIZONS = 2  # sweeps of value iteration, in effective horizons 1 / (1 - discount)


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
        self._has_blocked = False

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
            start, n_steps = state_of(observation, achieved_goal), round(1 / (1 - discount))
            states, transitions = self.rules.reach(start, self.sizes[2], n_steps)
            self._reachable = TabularModel.restore(states, transitions, self.sizes)
        return self._reachable

    def begin_episode(self) -> None:
        """Forget the actions that changed nothing."""
        if self._has_blocked:
            self._reachable, self._has_blocked = None, False

    def add_blocked(self, observation: Array, achieved_goal: Array, action: int) -> None:
        """Count an action that changed nothing, beside the prediction of the rules, until the next episode begins.

        Rules do not know every wall: those of a map that is new in each episode. action: counted from 0.
        """
        if self._reachable is None or (state := self._reachable.find(observation, achieved_goal)) is None:
            return
        row = state_of(observation, achieved_goal)
        if (self.rules.predict(row[None], np.array([action])) != row).any():  # else, as at a goal, nothing is new
            self._reachable.count(state, action, state)
            self._has_blocked = True


def state_of(observation: Array, achieved_goal: Array) -> Array:
    """Return a state, (n_columns,) int32."""
    return np.concatenate([np.ravel(observation), np.ravel(achieved_goal)]).astype(np.int32)


class TabularModel:
    """Visited states, and the counts of observed transitions between them.

    n_columns: columns of a state: those of the observation, then those of the achieved goal, whole numbers.
    n_goal_columns: how many of them are the achieved goal. n_actions: actions are 0 to n_actions - 1.

    The model is given up if there are more than MOST_STATES states, or numbers that are not whole. It is empty then.
    """

    def __init__(self, n_columns: int, n_goal_columns: int, n_actions: int) -> None:
        self.n_actions, self._n_goal_columns = n_actions, n_goal_columns
        self._states = np.zeros((64, n_columns), np.int32)
        self._transitions = np.zeros((64, 4), np.int32)
        self.steps = self._known_steps = 0
        self.is_given_up = False
        self._clear()

    def _clear(self) -> None:
        self._index: dict[bytes, int] = {}
        self._n_transitions = 0
        self._values: dict[tuple[bytes, bool], Array] = {}
        self.__dict__.pop("_edges", None)

    @cached_property
    def _edges(self) -> dict[tuple[int, int, int], int]:
        """The row of each transition. Only adding needs it."""
        return {(i, a, j): k for k, (i, a, j, _) in enumerate(self._transitions[: self._n_transitions].tolist())}

    @classmethod
    def restore(
        cls, states: Array, transitions: Array, sizes: tuple[int, int, int], counts: Array = NO_COUNTS
    ) -> TabularModel:
        """Return the model whose `arrays` these are. Raises InputError if they are not those of such a model.

        sizes: n_columns, n_goal_columns and n_actions. counts: not needed to plan.
        """
        model = cls(*sizes)
        check_model(states, transitions, sizes[0], sizes[2])
        if counts.shape != (3,) or counts.dtype != np.int64 or counts.min() < 0:
            raise InputError(f"Expected 3 counts, int64, for `state_counts`, got {counts}.")
        model._index = {row.tobytes(): index for index, row in enumerate(states)}
        model._n_transitions = len(transitions)
        # of an empty array, no array twice as long can be made
        model._states = np.concatenate([states, model._states])
        model._transitions = np.concatenate([transitions, model._transitions])
        model.steps, model._known_steps = int(counts[0]), int(counts[1])
        model.is_given_up = bool(counts[2])
        return model

    def arrays(self) -> dict[str, Array]:
        """Return copies of what the model holds.

        visited_states: (N, n_columns) int32. transitions: (E, 4) int32, state, action, next state and how often.
        state_counts: (3,) int64, steps, those to known states, and 1 if the model is given up.
        """
        counts = np.array([self.steps, self._known_steps, self.is_given_up], np.int64)
        states, transitions = self._states[: len(self._index)], self._transitions[: self._n_transitions]
        return dict(zip(VISITED, (states.copy(), transitions.copy(), counts), strict=True))

    @property
    def n_states(self) -> int:
        """Return the number of visited states."""
        return len(self._index)

    @property
    def known_fraction(self) -> float:
        """Return the fraction of the steps that led to a state of an earlier episode, 0 without steps."""
        return self._known_steps / max(1, self.steps)

    @property
    def is_used(self) -> bool:
        """Whether states are visited again often enough to plan over them."""
        return self._n_transitions > 0 and self.known_fraction >= OFTEN

    def add(self, episode: Episode, first_action: int) -> None:
        """Add the steps of an episode. first_action: the environment's number of action 0."""
        if self.is_given_up:
            return
        states = self.states_of(episode)
        if states is None:
            self.give_up()
            return
        n_known = len(self._index)
        visited = [self._add_state(row) for row in states]
        for state, action, following in zip(visited, episode.action.ravel().tolist(), visited[1:], strict=False):
            self._add_transition((state, int(action) - first_action, following))
        self.steps += len(episode)
        self._known_steps += sum(state < n_known for state in visited[1:])
        self._values.clear()
        if len(self._index) > MOST_STATES:
            self.give_up()

    @staticmethod
    def states_of(episode: Episode) -> Array | None:
        """Return the states of an episode, (T+1, n_columns) int32, None if their numbers are not whole."""
        rows = [part.reshape(len(part), -1) for part in (episode.observation, episode.achieved_goal)]
        states = np.concatenate(rows, 1).astype(np.float64)
        is_whole = (states == np.round(states)).all() and np.abs(states).max(initial=0) <= LARGEST_STATE
        return states.astype(np.int32) if is_whole else None

    def give_up(self) -> None:
        """Forget all states, and learn no more."""
        self._clear()
        self.is_given_up = True

    def _add_state(self, row: Array) -> int:
        index = self._index.setdefault(row.tobytes(), len(self._index))
        if index == len(self._states):
            self._states = np.concatenate([self._states, np.zeros_like(self._states)])
        self._states[index] = row
        return index

    def _add_transition(self, edge: tuple[int, int, int]) -> None:
        index = self._edges.setdefault(edge, self._n_transitions)
        if index == len(self._transitions):
            self._transitions = np.concatenate([self._transitions, np.zeros_like(self._transitions)])
        self._transitions[index, :3] = edge
        self._transitions[index, 3] += 1
        self._n_transitions = len(self._edges)

    def count(self, state: int, action: int, following: int) -> None:
        """Count a transition between known states once more."""
        self._add_transition((state, action, following))
        self._values.clear()

    def find(self, observation: Array, achieved_goal: Array) -> int | None:
        """Return the number of a state, None if it was never visited."""
        return self._index.get(state_of(observation, achieved_goal).tobytes())

    def known_action(self, observation: Array, achieved_goal: Array, goal: Array, discount: float) -> tuple[float, int]:
        """Return the value of the best action for a goal among those that were tried, and the action.

        It is NO_PATH, with the lowest value, if no known path leads to the goal.
        """
        state, lowest = self.find(observation, achieved_goal), -1 / (1 - discount)
        if state is None:
            return lowest, NO_PATH
        values = self.action_values(goal, discount, is_optimistic=False)[state]
        best = int(values.argmax())
        return float(values[best]), best if values[best] > lowest else NO_PATH

    def action_values(self, goal: Array, discount: float, is_optimistic: bool) -> Array:
        """Return the expected return of each action in each state, (N, n_actions), if the best actions follow.

        A step costs 1 unless it leads to a state whose achieved goal equals `goal`, as rewards -1 and 0 say.
        is_optimistic: whether an action that was never tried counts as a success that lasts, or else as a failure.
        """
        key = np.ravel(goal).tobytes(), is_optimistic
        if key not in self._values:
            if len(self._values) == MOST_PLANNED_GOALS:
                self._values.clear()
            self._values[key] = self.values_toward(self.meets(goal), discount, is_optimistic)
        return self._values[key]

    def achieved_goals(self) -> Array:
        """Return the achieved goal of each state, (N, n_goal_columns)."""
        return self._states[: len(self._index), -self._n_goal_columns :]

    def meets(self, goal: Array) -> Array:
        """Return which states meet a goal, (N,)."""
        return np.asarray((self.achieved_goals() == np.ravel(goal)).all(1))

    def values_toward(self, meets: Array, discount: float, is_optimistic: bool) -> Array:
        """Return what `action_values` returns if the goal is to be in one of the states `meets`, (N,) bool."""
        n_states, size = len(self._index), len(self._index) * self.n_actions
        state, action, following, count = self._transitions[: self._n_transitions].T
        pair = action * n_states + state  # NumPy takes a maximum over few numbers sooner along the first axis
        total = np.bincount(pair, count, size)
        probability, was_tried = count / total[pair], total > 0
        untried = np.zeros((self.n_actions, n_states))
        if not is_optimistic:  # where an episode ended with a success, no action was tried
            ended = meets & ~was_tried.reshape(untried.shape).any(0)
            untried[:, ~ended] = -1 / (1 - discount)
        reward, values = meets[following] - 1.0, np.where(was_tried, 0.0, untried.ravel())
        n_sweeps = round(HORIZONS / (1 - discount))
        for _ in range(n_sweeps):
            best = values.reshape(untried.shape).max(0)
            new = np.bincount(pair, probability * (reward + discount * best[following]), size)
            new = np.where(was_tried, new, untried.ravel())
            change, values = np.abs(new - values).max(initial=0), new
            if change < CONVERGED:
                break
        only_failures = (discount**n_sweeps - 1) / (1 - discount)
        values[values < only_failures + CONVERGED] = -1 / (1 - discount)  # no path of this length leads to the goal
        return values.reshape(untried.shape).T


def check_model(states: Array, transitions: Array, n_columns: int, n_actions: int) -> None:
    """Raise InputError if these are not the visited states and transitions of a model."""
    for name, array, size in (("visited_states", states, n_columns), ("transitions", transitions, 4)):
        if array.ndim != 2 or array.shape[1] != size or array.dtype != np.int32:
            raise InputError(f"Expected shape (N, {size}) and int32 for `{name}`, got {array.shape} {array.dtype}.")
    limits = [len(states), n_actions, len(states), LARGEST_STATE]
    if (transitions < [0, 0, 0, 1]).any() or (transitions >= limits).any():
        raise InputError("Expected transitions between the visited states, each made at least once.")

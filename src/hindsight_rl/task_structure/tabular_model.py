"""Visited states, what actions led from one to another, and value iteration over them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..errors import InputError
from ..records import Array, Episode

VISITED = ("visited_states", "transitions", "state_counts")
MOST_STATES = 100_000  # a few MB
OFTEN = 0.5  # fraction of the steps that led to a known state, from which on the model is used
LARGEST_STATE = 2**31 - 1  # of a state's whole numbers
MOST_PLANNED_GOALS = 100  # whose values are kept
NO_PATH = -1  # no known path leads to the goal
NO_COUNTS = np.zeros(3, np.int64)
CONVERGED = 1e-3  # change of a sweep, where a failed step costs 1
HORIZONS = 2  # sweeps of value iteration, in effective horizons 1 / (1 - discount)


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
        self.steps = self.known_steps = 0
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
        model.steps, model.known_steps = int(counts[0]), int(counts[1])
        model.is_given_up = bool(counts[2])
        return model

    def arrays(self) -> dict[str, Array]:
        """Return copies of what the model holds.

        visited_states: (N, n_columns) int32. transitions: (E, 4) int32, state, action, next state and how often.
        state_counts: (3,) int64, steps, those to known states, and 1 if the model is given up.
        """
        counts = np.array([self.steps, self.known_steps, self.is_given_up], np.int64)
        states, transitions = self._states[: len(self._index)], self._transitions[: self._n_transitions]
        return dict(zip(VISITED, (states.copy(), transitions.copy(), counts), strict=True))

    @property
    def n_states(self) -> int:
        """Return the number of visited states."""
        return len(self._index)

    @property
    def known_fraction(self) -> float:
        """Return the fraction of the steps that led to a state of an earlier episode, 0 without steps."""
        return self.known_steps / max(1, self.steps)

    @property
    def is_used(self) -> bool:
        """Whether states are visited again often enough to plan over them."""
        return self._n_transitions > 0 and self.known_fraction >= OFTEN

    def add(self, states: Array, action: Array) -> None:
        """Add the steps of an episode. states: (T+1, n_columns) int32. action: (T,), counted from 0."""
        if self.is_given_up:
            return
        n_known = len(self._index)
        visited = [self._add_state(row) for row in states]
        for edge in zip(visited, action.tolist(), visited[1:], strict=False):
            self._add_transition(edge)
        self.steps += len(action)
        self.known_steps += sum(state < n_known for state in visited[1:])
        self._values.clear()
        if len(self._index) > MOST_STATES:
            self.give_up()

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

    @property
    def chance(self) -> float:
        """Of actions that were repeated in a state, the fraction that had another result than the most frequent one."""
        state, action, _, count = self._transitions[: self._n_transitions].astype(np.int64).T
        _, pair = np.unique(np.stack([state, action]), axis=1, return_inverse=True)
        tries, most = np.bincount(pair, count), np.zeros(pair.max(initial=-1) + 1)
        np.maximum.at(most, pair, count)
        repeated = tries > 1
        return float(1 - most[repeated].sum() / tries[repeated].sum()) if repeated.any() else 0.0

    def find(self, state: Array) -> int | None:
        """Return the number of a state, (n_columns,) int32, None if it was never visited."""
        return self._index.get(state.tobytes())

    def without_columns(self, kept: Sequence[int]) -> TabularModel:
        """Return the model of states that have only some of the columns, ascending, the achieved goal among them.

        A step counts as one to a known state unless it was the first to it.
        """
        of_state = self._states[: len(self._index), list(kept)]
        model = TabularModel(len(kept), self._n_goal_columns, self.n_actions)
        number = np.array([model._add_state(row) for row in of_state], np.int64)
        for state, action, following, count in self._transitions[: self._n_transitions].tolist():
            edge = int(number[state]), action, int(number[following])
            model._add_transition(edge)
            model._transitions[model._edges[edge], 3] += count - 1
        model.steps, model.known_steps = self.steps, max(0, self.steps - model.n_states)
        return model

    def known_action(self, state: Array, goal: Array, discount: float) -> tuple[float, int]:
        """Return the value of the best action for a goal among those that were tried in a state, and the action.

        It is NO_PATH, with the lowest value, if no known path leads to the goal.
        """
        number, lowest = self.find(state), -1 / (1 - discount)
        if number is None:
            return lowest, NO_PATH
        values = self.action_values(goal, discount, is_optimistic=False)[number]
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


def states_of(episode: Episode) -> Array | None:
    """Return the states of an episode, (T+1, n_columns) int32, None if their numbers are not whole."""
    rows = [part.reshape(len(part), -1) for part in (episode.observation, episode.achieved_goal)]
    states = np.concatenate(rows, 1).astype(np.float64)
    is_whole = (states == np.round(states)).all() and np.abs(states).max(initial=0) <= LARGEST_STATE
    return states.astype(np.int32) if is_whole else None


def check_model(states: Array, transitions: Array, n_columns: int, n_actions: int) -> None:
    """Raise InputError if these are not the visited states and transitions of a model."""
    for name, array, size in (("visited_states", states, n_columns), ("transitions", transitions, 4)):
        if array.ndim != 2 or array.shape[1] != size or array.dtype != np.int32:
            raise InputError(f"Expected shape (N, {size}) and int32 for `{name}`, got {array.shape} {array.dtype}.")
    limits = [len(states), n_actions, len(states), LARGEST_STATE]
    if (transitions < [0, 0, 0, 1]).any() or (transitions >= limits).any():
        raise InputError("Expected transitions between the visited states, each made at least once.")

"""How a function of an environment is called for goals: found once, by trial.

Some functions accept one goal, some N goals, some either. Some return a plain number for a batch of one, write into their
arguments, need goals of one dtype, or expect a list of infos.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import GoalEnvError
from ..records import Array
from .random_play import numeric_info

Function = Callable[[Any, Any, Any], Any]
Info = Mapping[str, Array]


@dataclass(frozen=True)
class CallForm:
    """How N goals are passed to a function.

    goals: "batch": in one call, (N, ...). "ones": one call per goal, (1, ...). "single": one call per goal, (...).
    copies: the function gets copies, because it writes into its arguments.
    dtypes: of the achieved and the desired goals that it gets; None: those of the caller.
    lists_info: a call with a leading axis gets a list of infos; else one info with arrays (N, ...).
    """

    goals: Literal["batch", "ones", "single"] = "batch"
    copies: bool = False
    dtypes: tuple[str, str] | None = None
    lists_info: bool = False

    def call(self, function: Function, achieved: Array, desired: Array, info: Info) -> Array:
        """Return the function's value for each goal, (N,) numbers. achieved, desired: (N, ...). info: (N, ...) arrays.

        Raises what the function raises, and GoalEnvError if it does not return one number for each goal.
        """
        if self.goals == "batch":
            return self._one_call(function, achieved, desired, info)
        pick = (lambda i: slice(i, i + 1)) if self.goals == "ones" else (lambda i: i)
        rows = (pick(i) for i in range(len(achieved)))
        values = [self._one_call(function, achieved[i], desired[i], {k: v[i] for k, v in info.items()}) for i in rows]
        return np.concatenate(values)

    def _one_call(self, function: Function, achieved: Array, desired: Array, info: Info) -> Array:
        """Return the values of one call, (N,), or (1,) for a single goal."""
        n_goals = 1 if self.goals == "single" else len(achieved)
        listed = self.lists_info and self.goals != "single"
        achieved, desired = self._passed(achieved, 0), self._passed(desired, 1)
        values = np.asarray(function(achieved, desired, info_rows(info, n_goals) if listed else dict(info)))
        if values.size != n_goals or values.dtype.kind not in "fiub":
            returned = f"{values.dtype} of shape {values.shape}"
            raise GoalEnvError(f"it returned {returned}, not one number for each of {n_goals} goals")
        return values.reshape(n_goals)

    def _passed(self, goal: Array, which: int) -> Array:
        """Return goals as they are passed. which: 0 for achieved goals, 1 for desired ones."""
        if self.dtypes is not None:
            goal = goal.astype(self.dtypes[which], copy=False)
        if self.copies or self.goals != "batch":
            return np.array(goal)
        view = goal.view()
        view.flags.writeable = False
        return view

    def __str__(self) -> str:
        passed = [f"{self.dtypes[0]} goals"] if self.dtypes else []
        passed += ["copies of the goals, as it writes into them"] if self.copies and self.goals == "batch" else []
        passed += ["a list of infos"] if self.lists_info else []
        calls = "" if self.goals == "batch" else "it is called for each goal"
        return "; ".join(part for part in (calls, f"it gets {' and '.join(passed)}" if passed else "") if part)


SINGLE_FORMS = (CallForm("single"), CallForm("ones"), CallForm("ones", lists_info=True))


class GoalFunction:
    """A function of an environment, called as its trial found: (achieved_goal, desired_goal, info) -> values.

    The goals may have any leading shape, and the values have that shape: floats, or truth values for a flag. info: a
    mapping of arrays with the same leading shape, or one info for each of N goals.
    function, name: of the environment. goal_shape: of one goal. form: how it is called. is_flag: truth values are returned.
    needs_float64: whether it fails if goals are rounded to float32.
    Raises GoalEnvError, which names the call, if the function fails or returns another form than in its trial.
    """

    def __init__(
        self,
        function: Function,
        name: str,
        goal_shape: tuple[int, ...],
        form: CallForm,
        is_flag: bool = False,
        needs_float64: bool = False,
    ) -> None:
        self.function, self.name, self.form, self.needs_float64 = function, name, form, needs_float64
        self._goal_shape, self._is_flag = goal_shape, is_flag

    def __call__(
        self, achieved_goal: Any, desired_goal: Any, info: Info | Sequence[Mapping[str, Any]] | None = None
    ) -> Array:
        """Return the values for these goals, of their leading shape."""
        achieved, desired = np.asarray(achieved_goal), np.asarray(desired_goal)
        info = info if isinstance(info, Mapping) else numeric_info(info or ())
        leading = achieved.shape[: achieved.ndim - len(self._goal_shape)]
        n_goals, n_axes = math.prod(leading), len(leading)
        if n_axes != 1:
            achieved, desired = (goal.reshape(n_goals, *self._goal_shape) for goal in (achieved, desired))
            info = {key: (v := np.asarray(values)).reshape(n_goals, *v.shape[n_axes:]) for key, values in info.items()}
        if not n_goals:
            return np.zeros(leading, np.bool_ if self._is_flag else np.float64)
        try:
            values = self.form.call(self.function, achieved, desired, info)
        except Exception as problem:
            raise GoalEnvError(self._failure(leading, info, problem)) from problem
        if self._is_flag:
            values = values.astype(np.bool_)
        elif values.dtype.kind != "f":
            values = values.astype(np.float64)
        return values.reshape(leading)

    def _failure(self, leading: tuple[int, ...], info: Info, problem: Exception) -> str:
        """Return which call failed, and what may be done. A KeyError may be about info."""
        entries = ", ".join(info) or "no entries"
        hint = " If it reads other entries, name them in the option info_keys." if isinstance(problem, KeyError) else ""
        return (
            f"{self.name} failed for goals of leading shape {leading} and an info with {entries} ({describe(problem)}). "
            f"It must return one number for every goal that the environment produces, as it did when it was tried.{hint}"
        )


class RecordedInfo(dict[str, Any]):
    """An info that records which of its entries are read."""

    def __init__(self, info: Mapping[str, Any], read: set[str]) -> None:
        super().__init__(info)
        self.read = read

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry, and record it."""
        self.read.add(key)
        return super().get(key, default)


def entries_read(function: Function, achieved: Array, desired: Array, info: Info) -> set[str]:
    """Return the entries of info that a function reads for one goal.

    achieved, desired: (1, ...). info: (N, ...) arrays.
    """
    for form in SINGLE_FORMS:
        read: set[str] = set()
        rows = [RecordedInfo(row, read) for row in info_rows(info, 1)]
        batch = RecordedInfo({key: values[:1] for key, values in info.items()}, read)
        passed = rows[0] if form.goals == "single" else rows if form.lists_info else batch
        at: Any = 0 if form.goals == "single" else slice(None)
        try:
            function(achieved[at].copy(), desired[at].copy(), passed)
        except Exception:  # as in the trial of the function, one form must work
            continue
        return read
    return set()


def describe(problem: Exception) -> str:
    """Return the error of a function, with its class unless it is ours."""
    return str(problem) if isinstance(problem, GoalEnvError) else f"{type(problem).__name__}: {problem}"


def info_rows(info: Info, n_rows: int) -> list[dict[str, Any]]:
    """Return one info for each row."""
    return [{key: values[i] for key, values in info.items()} for i in range(n_rows)]


def batch_forms(dtypes: tuple[str, str]) -> Sequence[CallForm]:
    """Return the forms to try for a whole batch, the least expensive first. dtypes: of the environment's own goals."""
    return [
        CallForm("batch", copies, converted, lists_info)
        for lists_info in (False, True)
        for converted in (None, dtypes)
        for copies in (False, True)
    ]


def row_forms(found: CallForm, dtypes: tuple[str, str]) -> Sequence[CallForm]:
    """Return the forms to try goal by goal. found: the one that single goals were answered in."""
    return [found, CallForm(found.goals, dtypes=dtypes, lists_info=found.lists_info)]

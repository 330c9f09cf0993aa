"""Sampler: draw rows, choose goals, gather, judge -> Batch. The timeline is only ever read."""

from __future__ import annotations

import numpy as np

from ..errors import NothingToSampleError, OptionError
from ..options.relabel import DESIRED, REAL, STRATEGIES, Relabel
from ..records import Array, ArraySpec, Batch, Episode, GoalSpec
from ..records.symmetries import Symmetries
from .batches import Form
from .chance import Chance
from .ends import AS_STORED, RewardFunction, Termination
from .goals import Strategy, check_strategy, mixed_rows, refuse_goal_rows, relabelled_share, users_rows
from .judging import Judging
from .kernels import RANDOM, choose_goals, gather, row_layout, sample, turn
from .returns import fold_steps
from .subgoal_goals import SubgoalGoals
from .timeline import Timeline
from .told import Told

TURNED = {  # what a symmetry turns in a batch: its field, and which columns these are
    "observation": "observation",
    "next_observation": "observation",
    "achieved_goal": "goal",
    "next_achieved_goal": "goal",
    "goal": "goal",
    "action": "action",
}


class Sampler:
    """Relabelled batches of a timeline (Andrychowicz et al. 2017); see `HindsightBuffer` for the arguments.

    symmetries: augmented from which the world looks the same; each sample is shown from one drawn at random.
    chance: where all random numbers come from. her_probability: the share of samples that are relabelled here. told: where
    goals were drawn when their episodes ended, that is what relabels instead. beta: how far weights make up for rows that
    are drawn more often, where the timeline has priorities.
    """

    def __init__(
        self,
        timeline: Timeline,
        compute_reward: RewardFunction,
        n_sampled_goal: int | None,
        strategy: str | Strategy | Relabel,
        seed: int | np.random.Generator,
        ends: Termination = AS_STORED,
        n_steps: int = 1,
        discount: float = 1.0,
        symmetries: Symmetries | None = None,
        subgoals: SubgoalGoals | None = None,
        extra_reward: bool = False,
    ) -> None:
        self.timeline = timeline
        self.chance, self.judging = Chance(timeline, seed), Judging(compute_reward, ends, extra_reward)
        self.told: Told | None = None
        self.symmetries = symmetries or Symmetries((), timeline.spec)
        self.subgoals = subgoals or SubgoalGoals(timeline, (), 0.0, 0.0, self.symmetries)
        if self.subgoals.subgoals and n_steps > 1:
            raise OptionError(
                f"n_steps is {n_steps}, but subgoals are learnt one step at a time: set n_steps=1 or subgoals=()"
            )
        self.n_steps, self.discount = n_steps, discount
        self.relabel_by(strategy, n_sampled_goal)
        self._ring: Array = timeline.rows.view(np.uint8)
        self._counts: Array = timeline.rows.view(np.int32)
        self._layout = row_layout(timeline.rows.dtype)
        self._forms: dict[tuple[int, ...], Form] = {}
        self._forms_ahead: dict[int, Form] = {}
        self._filling, self._n_proposals = (0, 0, 0), 0
        self.beta = 1.0

    def relabel_by(self, strategy: str | Strategy | Relabel, n_sampled_goal: int | None) -> None:
        """Choose goals so from the next sample on; raises as `HindsightBuffer` does, before anything changes."""
        checked, share = check_strategy(strategy), relabelled_share(strategy, n_sampled_goal)
        self.strategy, self.her_probability = checked, share
        name = strategy.only if isinstance(strategy, Relabel) else strategy
        self._code = STRATEGIES.index(name) if isinstance(name, str) else -1

    @property
    def nbytes(self) -> int:
        """Memory of the sampler's own, without the timeline's."""
        forms = (*self._forms.values(), *self._forms_ahead.values())
        return self.chance.nbytes + sum(form.plan.nbytes + form.goal_at.nbytes for form in forms)

    def sample(self, shape: tuple[int, ...], out: Batch | None = None) -> Batch:
        """A batch with the leading axes `shape`, all of it independent draws, in fresh memory or in that of `out`.

        Raises NothingToSampleError, InputError where `out` does not fit, GoalEnvError where the reward is unusable.
        """
        if not self.timeline.num_transitions:
            raise NothingToSampleError(
                "there is nothing to sample yet: the buffer holds 0 finished episodes; sample once an episode has ended"
            )
        form = self._forms.get(shape)
        if form is None:
            extras = ("discount",) if self.n_steps > 1 else ()
            form = self._forms[shape] = Form(self.timeline.rows.dtype, shape, extras)
        batch, flat, info, block, plan = form.fresh() if out is None else form.reuse(out)
        if not self._sample_at_once(flat, form.goal_at, plan, block):
            self._sample_in_parts(flat, form.goal_at, plan, block, shape[-1])
        if self.told is not None:
            self.told.pick(flat)
        elif self.n_steps == 1:
            self.judging.judge(flat, info, self._own_goals(flat.row))
        else:
            self._look_ahead(flat, form.goal_at)
        if self.subgoals.subgoals:
            batch.subgoal = self.subgoals.tell(flat, form.goal_at, self.chance.numbers(len(flat))).reshape(shape)
        if len(self.symmetries) > 1:
            self._turn(flat)
        if self.timeline.priorities is not None:
            batch.weight = self.timeline.priorities.weights(batch.row, self.beta)
        return batch

    def _sample_at_once(self, batch: Batch, goal_at: Array, plan: Array, block: Array) -> bool:
        """One compiled loop, for most batches; False where it does not serve."""
        if not 0 <= self._code < RANDOM or self.timeline.priorities is not None:
            return False
        timeline, chance = self.timeline, self.chance
        filling = (timeline.num_transitions, timeline.high_water, len(goal_at))
        if filling != self._filling:  # it changes with every episode, not with every batch
            self._filling, self._n_proposals = filling, chance.count_proposals(len(goal_at))
        n_proposals = self._n_proposals
        if not n_proposals:
            return False
        is_done: bool = sample(
            self._ring,
            self._layout,
            chance.state,
            chance.room(n_proposals + len(goal_at)),
            n_proposals,
            timeline.high_water,
            self.her_probability,
            self._code,
            batch.row,
            batch.is_relabelled,
            goal_at,
            plan,
            block,
        )
        return is_done

    def _sample_in_parts(self, batch: Batch, goal_at: Array, plan: Array, block: Array, batch_size: int) -> None:
        """The same for a user's strategy, a mixture, for "random", for priorities, and where few rows are live."""
        row, is_relabelled, priorities = batch.row, batch.is_relabelled, self.timeline.priorities
        if priorities is None:
            row[:] = self.chance.rows(len(row))
        else:
            row[:] = priorities.draw(self.chance.shares(len(row), batch_size))
        if callable(self.strategy):
            self._choose_by(self.strategy, row, is_relabelled, goal_at)
        elif self._code < 0 and isinstance(self.strategy, Relabel):
            self._mix(self.strategy, row, is_relabelled, goal_at)
        else:
            other_row, u = self.chance.rows(len(row)) if self._code == RANDOM else row, self.chance.numbers(len(row))
            settings = (self.her_probability, self._code)
            choose_goals(self._counts, self._layout, u, *settings, row, other_row, is_relabelled, goal_at)
        gather(self._ring, self.timeline.rows.itemsize, row, goal_at, plan, block)

    def _mix(self, relabel: Relabel, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """As `choose_goals`, by shares of several sources."""
        timeline, other_row, u = self.timeline, self.chance.rows(len(row)), self.chance.numbers(len(row))
        *_, row_bytes, achieved_at, desired_at = self._layout.tolist()
        counts = timeline.steps_done[row], timeline.steps_left[row]
        goal_row, source = mixed_rows(relabel, row, *counts, u, other_row)
        is_relabelled[:] = source < REAL
        goal_at[:] = goal_row * row_bytes + np.where(source < DESIRED, achieved_at, desired_at)

    def _choose_by(self, strategy: Strategy, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """As `choose_goals`, by the user's own strategy."""
        timeline, u, probability = self.timeline, self.chance.numbers(len(row)), self.her_probability
        *_, row_bytes, achieved_at, desired_at = self._layout.tolist()
        is_relabelled[:] = u < probability
        goal_at[:] = row * row_bytes + desired_at
        told = row[is_relabelled]
        if len(told):
            rest = u[is_relabelled] / probability
            goal_row = users_rows(strategy, told, timeline.steps_done[told], timeline.steps_left[told], rest)
            refuse_goal_rows(goal_row, timeline.holds(goal_row))
            goal_at[is_relabelled] = goal_row * row_bytes + achieved_at

    def _own_goals(self, row: Array) -> Array | None:
        """The goals that were asked in these rows, where judging needs them."""
        return np.asarray(self.timeline.rows["desired_goal"][row]) if self.judging.extra_reward else None

    def _look_ahead(self, batch: Batch, goal_at: Array) -> None:
        """RewardFunction n steps of every sample, those that follow its own under its goal, and fold them into one."""
        n, size, timeline = self.n_steps, len(goal_at), self.timeline
        form = self._forms_ahead.get(size)
        if form is None:
            form = self._forms_ahead[size] = Form(timeline.rows.dtype, (n, size))
        steps, flat, info, block, plan = form.fresh()
        steps_left = timeline.steps_left[batch.row]
        steps.row[:] = batch.row + np.minimum(np.arange(n)[:, None], steps_left - 1)
        steps.is_relabelled[:] = batch.is_relabelled
        form.goal_at.reshape(n, size)[:] = goal_at
        gather(self._ring, timeline.rows.itemsize, flat.row, form.goal_at, plan, block)
        self.judging.judge(flat, info, self._own_goals(flat.row))
        fold_steps(steps, steps_left, self.discount, batch)

    def _turn(self, batch: Batch) -> None:
        """Show each sample from a side of its own. Rewards were judged before: no side changes them."""
        element = (self.chance.numbers(len(batch)) * len(self.symmetries)).astype(np.int64)
        for field, name in TURNED.items():
            maps = self.symmetries.maps[name]
            turn(getattr(batch, field), element, maps.source, maps.sign, maps.offset)


def compile_kernels() -> None:
    """Compile the loops now, by way of a tiny timeline, rather than within what is timed; they are kept on disk."""
    part, rows = ArraySpec((1,), "float32"), np.zeros((3, 1), np.float32)
    spec = GoalSpec(part, part, part)
    timeline = Timeline(spec, capacity=4)
    timeline.append(Episode(rows, rows, rows, rows[1:], rows[1:, 0]))
    mirror = Symmetries(("o0=-o0 g0=-g0 a0=-a0",), spec)
    Sampler(timeline, lambda achieved, goal, info: goal[:, 0], 4, "future", 0, symmetries=mirror).sample((1,))

"""The updates of a run: batches are sampled, the agent learns from them, priorities go back to the buffer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from ..agents import Agent
from ..errors import HindsightError
from ..options import Settings
from ..records import Array, Batch
from ..records.reward_scale import measure_scale
from ..replay.buffer import HindsightBuffer
from .counts import Counts, Meter
from .demonstrations import Demonstrations

_ACHIEVED = "train/goals_already_achieved"  # fraction of the relabelled goals
MEASURED_EPISODES = 100  # that show the scale of rewards
UPDATES_PER_DRAW = 8  # the cost of a call is shared, and the batches still fit the cache


class UpdateLoop:
    """Make the updates that are due.

    demonstrations: the source of a part of each batch, if there are any.
    last_step: the environment step at which `beta` reaches 1.
    is_updating: whether an update is being made. If an error interrupts it, this stays True: the agent is changed in part.
    """

    def __init__(
        self, agent: Agent, buffer: HindsightBuffer, settings: Settings, demonstrations: Demonstrations | None = None
    ) -> None:
        self.agent, self.buffer, self.settings, self.demonstrations = agent, buffer, settings, demonstrations
        self._batches: Batch | None = None
        self.is_updating = False
        self.last_step = settings.training.steps
        training = settings.training
        wanted = max(1, round(training.batch_size * training.demonstration_fraction)) if demonstrations else 0
        self._n_demonstrations = min(wanted, training.batch_size - 1)  # of each batch
        self._own_size = training.batch_size - self._n_demonstrations

    def run(self, counts: Counts, meter: Meter) -> None:
        """Make the updates that `counts` owes. A fraction of an update is carried over."""
        batches_each = self.agent.batches_per_update
        due = int(counts.owed_updates // batches_each)
        if due:
            self._set_reward_scale()
        self._follow_schedules(counts.env_steps)
        with _fast_arithmetic(self.settings.training.threads):
            for first in range(0, due, UPDATES_PER_DRAW):
                self._learn(min(UPDATES_PER_DRAW, due - first) * batches_each, counts, meter)
        self._require_finite_weights()

    def run_offline(self, n_updates: int, counts: Counts, meter: Meter) -> None:
        """Make at least `n_updates` updates from the demonstrations alone, and at most one draw of batches more."""
        assert self.demonstrations is not None, "the options say so"
        n_batches, last = UPDATES_PER_DRAW * self.agent.batches_per_update, counts.offline_updates + n_updates
        self._set_reward_scale()
        with _fast_arithmetic(self.settings.training.threads):
            while counts.offline_updates < last:
                with self.demonstrations.buffer.random.restored_on_error():
                    batches = self.demonstrations.sample(n_batches, self.settings.training.batch_size)
                self.is_updating = True
                self._update(batches, counts, meter)
                counts.offline_updates += n_batches
                self.is_updating = False
        self._require_finite_weights()

    def _learn(self, n_batches: int, counts: Counts, meter: Meter) -> None:
        """Learn from one draw of batches. If drawing them raises an error, it can be repeated with the same result."""
        with ExitStack() as stack:
            for buffer in self._buffers:
                stack.enter_context(buffer.random.restored_on_error())
            batches = self._draw(n_batches, meter)
        self.is_updating = True
        self._update(batches, counts, meter)
        counts.owed_updates -= n_batches
        self.is_updating = False

    def _draw(self, n_batches: int, meter: Meter) -> Batch:
        """Return batches of the run's own steps and, if there are any, of the demonstrations."""
        reused = self._batches if self._batches is not None and len(self._batches) == n_batches else None
        batches = self._batches = self.buffer.sample_many(n_batches, self._own_size, out=reused)
        if _ACHIEVED not in meter.sums:  # once per record, since it recomputes rewards
            fraction = self.buffer.already_achieved_fraction(batches)
            if fraction is not None:
                meter.add(_ACHIEVED, fraction)
        if self.demonstrations and self._n_demonstrations:
            return self.demonstrations.extend(batches, self._n_demonstrations)
        return batches

    def _update(self, batches: Batch, counts: Counts, meter: Meter) -> None:
        """Update the agent, the priorities, the means and the count of updates."""
        metrics = self.agent.updates(batches)
        priorities = [m.pop("priority")[:, : self._own_size] for m in metrics if "priority" in m]
        self._set_priorities(batches.row[:, : self._own_size], priorities)
        for name in metrics[0]:
            values = torch.stack([each[name].reshape(()) for each in metrics])
            meter.add(f"train/{name}", float(values.double().sum()), len(metrics))  # waits for the device once per metric
        counts.updates += len(batches)

    def _follow_schedules(self, env_steps: int) -> None:
        """Set what changes during a run: `beta` rises linearly to 1 at the last step, and the relabelling strategy."""
        replay = self.settings.replay
        self.buffer.beta = min(1.0, replay.beta + (1.0 - replay.beta) * min(1.0, env_steps / max(1, self.last_step)))
        if (relabel := replay.relabel_at_step(env_steps)) is not None:
            for buffer in self._buffers:
                buffer.strategy = relabel

    @property
    def _buffers(self) -> list[HindsightBuffer]:
        return [self.buffer, *([self.demonstrations.buffer] if self.demonstrations else [])]

    def _set_reward_scale(self) -> None:
        """Let all buffers sample rewards in the units that the agent learns in. An unknown scale is measured once."""
        if self.agent.reward_scale is None:
            buffer = next(buffer for buffer in self._buffers if len(buffer))
            self.agent.reward_scale = measure_scale(buffer.compute_reward, buffer.timeline.episodes(MEASURED_EPISODES))
        for buffer in self._buffers:
            if buffer.reward_scale != self.agent.reward_scale:
                buffer.reward_scale = self.agent.reward_scale

    def _set_priorities(self, row: Array, priorities: list[torch.Tensor]) -> None:
        if priorities:
            self._require_finite_weights()  # this error explains more than that of a NaN priority
            self.buffer.update_priorities(row, torch.cat(priorities).cpu().numpy())

    def _require_finite_weights(self) -> None:
        if not self.agent.is_finite():
            raise HindsightError(
                f"the weights are no longer finite after {self.agent.n_updates} updates. Lower learning_rate, or set "
                f"gradient_clip"
            )


@contextmanager
def _fast_arithmetic(threads: int) -> Iterator[None]:
    """Use `threads` threads of torch, and flush denormal numbers to 0.

    Late in training gradients and moments become denormal (below 1e-38), which halves the speed of a processor. Acting
    keeps denormals, because workers do.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)

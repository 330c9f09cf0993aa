"""The updates of a run: batches are sampled, the agent learns from them, priorities go back to the buffer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from ..errors import HindsightError
from ..records import Array, Batch
from ..records.reward_scale import measure_scale
from ..replay.buffer import HindsightBuffer
from .run_state import RunState

_ACHIEVED = "train/goals_already_achieved"  # fraction of the relabelled goals
MEASURED_EPISODES = 100  # that show the scale of rewards
UPDATES_PER_DRAW = 8  # the cost of a call is shared, and the batches still fit the cache


class UpdateLoop:
    """Make the updates that are due.

    last_step: the environment step at which `beta` reaches 1.
    is_updating: whether an update is being made. If an error interrupts it, this stays True: the agent is changed in part.
    """

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._batches: Batch | None = None  # memory for the next ones
        self.is_updating = False
        self.last_step = run.settings.training.steps

    def forget_batches(self) -> None:
        """Use other memory for the batches of another buffer."""
        self._batches = None

    @property
    def _n_demonstrations(self) -> int:
        """How many samples of each batch are demonstrations."""
        options = self._run.settings.training
        wanted = max(1, round(options.batch_size * options.demonstration_fraction)) if self._run.demonstrations else 0
        return min(wanted, options.batch_size - 1)

    @property
    def _own_size(self) -> int:
        return self._run.settings.training.batch_size - self._n_demonstrations

    def run(self) -> None:
        """Make the updates that are due. A fraction of an update is carried over."""
        counts, batches_each = self._run.counts, self._run.agent.batches_per_update
        due = int(counts.due_updates // batches_each)
        if due:
            self._set_reward_scale()
        self._follow_schedules(counts.env_steps)
        with _fast_arithmetic(self._run.settings.training.threads):
            for first in range(0, due, UPDATES_PER_DRAW):
                self._learn(min(UPDATES_PER_DRAW, due - first) * batches_each)
        self._require_finite_weights()

    def run_offline(self, n_updates: int) -> None:
        """Make at least `n_updates` updates from the demonstrations alone, and at most one draw of batches more."""
        counts, demonstrations = self._run.counts, self._run.demonstrations
        assert demonstrations is not None, "the options say so"
        n_batches, last = UPDATES_PER_DRAW * self._run.agent.batches_per_update, counts.offline_updates + n_updates
        self._set_reward_scale()
        with _fast_arithmetic(self._run.settings.training.threads):
            while counts.offline_updates < last:
                with demonstrations.buffer.random.restored_on_error():
                    batches = demonstrations.sample(n_batches, self._run.settings.training.batch_size)
                self.is_updating = True
                self._update(batches)
                counts.offline_updates += n_batches
                self.is_updating = False
        self._require_finite_weights()

    def _learn(self, n_batches: int) -> None:
        """Learn from one draw of batches. If drawing them raises an error, it can be repeated with the same result."""
        with ExitStack() as stack:
            for buffer in self._buffers:
                stack.enter_context(buffer.random.restored_on_error())
            batches = self._draw(n_batches)
        self.is_updating = True
        self._update(batches)
        self._run.counts.due_updates -= n_batches
        self.is_updating = False

    def _draw(self, n_batches: int) -> Batch:
        """Return batches of the run's own steps and, if there are any, of the demonstrations."""
        run = self._run
        reused = self._batches if self._batches is not None and len(self._batches) == n_batches else None
        batches = self._batches = run.buffer.sample_many(n_batches, self._own_size, out=reused)
        if _ACHIEVED not in run.meter.sums:  # once per record, since it recomputes rewards
            fraction = run.buffer.already_achieved_fraction(batches)
            if fraction is not None:
                run.meter.add(_ACHIEVED, fraction)
        if run.demonstrations and self._n_demonstrations:
            return run.demonstrations.extend(batches, self._n_demonstrations)
        return batches

    def _update(self, batches: Batch) -> None:
        """Update the agent, the priorities, the means and the count of updates."""
        with torch.inference_mode():  # without the bookkeeping of autograd, which takes a tenth of an update
            metrics = self._run.agent.updates(batches)
        priorities = [m.pop("priority")[:, : self._own_size] for m in metrics if "priority" in m]
        self._set_priorities(batches.row[:, : self._own_size], priorities)
        for name in metrics[0]:  # the device is waited for once per metric
            values = torch.stack([each[name].reshape(()) for each in metrics])
            self._run.meter.add(f"train/{name}", float(values.double().sum()), len(metrics))
        self._run.counts.updates += len(batches)

    def _follow_schedules(self, env_steps: int) -> None:
        """Set what changes during a run: `beta` rises linearly to 1 at the last step, and the relabelling strategy."""
        replay = self._run.settings.replay
        self._run.buffer.beta = min(1.0, replay.beta + (1.0 - replay.beta) * min(1.0, env_steps / max(1, self.last_step)))
        if (relabel := replay.relabel_at_step(env_steps)) is not None:
            for buffer in self._buffers:
                buffer.strategy = relabel

    @property
    def _buffers(self) -> list[HindsightBuffer]:
        run = self._run
        return [run.buffer, *([run.demonstrations.buffer] if run.demonstrations else [])]

    def _set_reward_scale(self) -> None:
        """Let all buffers sample rewards in the units that the agent learns in. An unknown scale is measured once."""
        if self._run.agent.reward_scale is None:
            buffer = next(buffer for buffer in self._buffers if len(buffer))
            self._run.agent.reward_scale = measure_scale(buffer.compute_reward, buffer.timeline.episodes(MEASURED_EPISODES))
        for buffer in self._buffers:
            if buffer.reward_scale != self._run.agent.reward_scale:
                buffer.reward_scale = self._run.agent.reward_scale

    def _set_priorities(self, row: Array, priorities: list[torch.Tensor]) -> None:
        if priorities:
            self._require_finite_weights()  # this error explains more than that of a NaN priority
            self._run.buffer.update_priorities(row, torch.cat(priorities).cpu().numpy())

    def _require_finite_weights(self) -> None:
        if not self._run.agent.is_finite():
            raise HindsightError(
                f"the weights are no longer finite after {self._run.agent.n_updates} updates. Lower learning_rate, or set "
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

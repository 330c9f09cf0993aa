"""How a run is made of episodes, updates and evaluations."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import OptionError


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Options of a run."""

    seed: int = 0  # every random number of the run follows from it
    steps: int = 100_000  # environment steps at most; the episode under way is finished
    random_steps: int = 1_000  # uniformly random actions before the policy acts and learning begins
    updates_per_step: float = 1.0  # critic updates per environment step, owed at the end of each job
    eval_every: int = 5_000  # environment steps between evaluations; 0 for none
    eval_episodes: int = 50  # episodes per evaluation, on seeds of their own
    solved_at: float = 0.95  # success rate that counts as solved
    solved_evaluations: int = 2  # evaluations in a row at that rate that end the run; 0 never ends it early
    log_every: int = 1_000  # environment steps between records in metrics.jsonl
    checkpoint_every: int = 20_000  # environment steps between checkpoints (one is also written when the run stops)
    keep_every: int = 10  # keep the policy of every so many evaluations under its step count; 0 keeps none
    learners: int = 1  # processes that learn together, each from batches and episodes of its own, by averaged gradients
    threads: int = 1  # threads of torch while learning; one is the fastest for networks of this size

    def __post_init__(self) -> None:
        for name in ("seed", "random_steps", "eval_every", "solved_evaluations", "checkpoint_every", "keep_every"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must not be negative")
        for name in ("steps", "eval_episodes", "log_every", "learners", "threads"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} is {getattr(self, name)}, but it must be at least 1")
        if not 0 < self.updates_per_step < 1_000:
            raise OptionError(f"updates_per_step is {self.updates_per_step}, but it must lie between 0 and 1,000")
        if not 0 < self.solved_at <= 1:
            raise OptionError(f"solved_at is {self.solved_at}, but a success rate lies between 0 and 1")

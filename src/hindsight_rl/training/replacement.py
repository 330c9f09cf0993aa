"""When a new agent replaces that of a run: never one that improves."""

from __future__ import annotations

from ..options import Settings
from ..structure.steps import LITTLE
from .run_state import RunState

AGAIN_FROM = 5_000  # environment steps before which no agent is replaced
LOOK_EVERY = AGAIN_FROM // 2  # steps between looks at what is being tried


def may_be_replaced(run: RunState) -> bool:
    """Return whether the agent has learned nothing yet, or its unguided episodes show that it is poor and does not improve.

    With waypoints or graded rewards, low success in training does not show that. Paths or exactness may be missing instead.
    """
    is_local = run.settings.agent_options.n_waypoints > 0 or run.settings.replay.tolerance_levels > 0
    is_old = run.counts.env_steps >= AGAIN_FROM and not is_local
    return has_not_learned(run) or (is_old and is_poor(run))


def is_poor(run: RunState) -> bool:
    """Return whether the agent has little to lose; it may be stuck with what its first episodes taught it."""
    return run.success.is_below(LITTLE)


def why_new(run: RunState, settings: Settings) -> str:
    """Return why a new agent replaces that of a run. settings: those from now on."""
    before, after = run.settings.agent_options.to_dict(), settings.agent_options.to_dict()
    own = [name for name, value in after.items() if value != before[name]]
    reasons = [f"options of the agent changed ({', '.join(own)})"] if own else []
    if not has_not_learned(run):
        reasons.append(f"the success in training was low ({run.success})")
    return ", and ".join(reasons)


def has_not_learned(run: RunState) -> bool:
    """Whether the agent has made no update, apart from those from demonstrations alone."""
    return run.counts.updates == run.counts.offline_updates

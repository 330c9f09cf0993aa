"""When and how another agent replaces that of a run: never one that improves, unless it knows all that this one does."""

from __future__ import annotations

import math

import numpy as np

from ..agents.widen import take_over
from ..options import Settings
from ..structure.model import Difference, mean_and_error
from ..structure.steps import LITTLE
from .run_state import Parts, RunState
from .unguided_success import WINDOW

AGAIN_FROM = 5_000  # environment steps before which no agent is replaced
MOST_CATCHING_UP = AGAIN_FROM  # catch-up updates of a new agent: as many as the first one made that may be replaced
LOOK_EVERY = AGAIN_FROM // 2  # steps between looks at what is being tried


def may_be_replaced(run: RunState) -> bool:
    """Return whether the agent has learned nothing yet, or its unguided episodes show that it is poor and does not improve.

    With waypoints or graded rewards, low success in training does not show that. Paths or exactness may be missing instead.
    """
    is_local = run.settings.agent_options.n_waypoints > 0 or run.settings.replay.tolerance_levels > 0
    is_old = run.counts.env_steps >= AGAIN_FROM and not is_local
    return has_not_learned(run) or (is_old and is_poor(run))


def is_poor(run: RunState) -> bool:
    """Return whether the agent has little to lose; it may be stuck with what its first episodes taught it.

    With rewards of more than two values, an agent that is not exact enough to succeed may still have learned most.
    """
    return run.success.is_below(LITTLE) and not _earns_more(run)


def _earns_more(run: RunState) -> bool:
    """Return whether the last episodes have clearly higher rewards than the first ones, which were random.

    False for rewards of two values: there only the success shows that.
    """
    scale = run.agent.reward_scale
    if scale is None or scale.is_sparse:
        return False
    rewards = np.array([each.reward.mean() for each in run.buffer.timeline.episodes()])
    first, last = mean_and_error(rewards[:WINDOW]), mean_and_error(rewards[-WINDOW:])
    return Difference(last.mean - first.mean, math.hypot(last.error, first.error)).is_above(0.0, 1)


def replace_agent(run: RunState, settings: Settings, parts: Parts) -> None:
    """Go on with a new agent, the first of these parts, and its buffers.

    It makes catch-up updates in place of the updates of the agent before it.
    """
    run.rebuild(parts, settings, why_new(run, settings))
    catch_up = min(run.counts.updates, max(MOST_CATCHING_UP, run.counts.offline_updates))
    run.counts.due_updates += catch_up
    run.counts.catch_up_updates += catch_up


def widen_agent(run: RunState, settings: Settings, parts: Parts) -> None:
    """Go on with an agent that sees more columns, the first of these parts, and knows what the one before it knows."""
    take_over(parts[0], run.agent)
    run.rebuild(parts, settings)


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

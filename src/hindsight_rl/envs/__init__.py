"""Goal environments: made, checked, and two small ones of this library."""

from __future__ import annotations

SMALL_TASKS = ("BitFlipping", "PointReach")


def register_environments() -> None:
    """Register the small tasks with Gymnasium; `import hindsight_rl` calls this."""
    from gymnasium.envs.registration import register, registry

    for name in SMALL_TASKS:
        if f"{name}-v0" not in registry:
            register(f"{name}-v0", entry_point=f"hindsight_rl.envs.small_tasks:{name}")

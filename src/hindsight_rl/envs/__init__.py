"""Goal environments: made, checked, and two small ones of this library."""

from __future__ import annotations

SMALL_TASKS = {"BitFlipping": "hindsight_rl.envs.bit_flipping", "PointReach": "hindsight_rl.envs.point_reach"}


def register_environments() -> None:
    """Register the small tasks with Gymnasium; `import hindsight_rl` calls this."""
    from gymnasium.envs.registration import register, registry

    for name, module in SMALL_TASKS.items():
        if f"{name}-v0" not in registry:
            register(f"{name}-v0", entry_point=f"{module}:{name}")

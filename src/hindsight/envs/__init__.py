"""Where a step comes from: goal environments, ours and anybody's."""

from __future__ import annotations


def register_environments() -> None:
    """Register our environments with Gymnasium; `import hindsight` calls this."""
    from gymnasium.envs.registration import register, registry

    if "PointReach-v0" not in registry:
        register(
            "PointReach-v0",
            entry_point="hindsight.envs.point_reach:PointReach",
            vector_entry_point="hindsight.envs.point_reach:PointReachVector",
        )

"""Where a step comes from: goal environments, ours and anybody's."""

from __future__ import annotations

OURS = {"BitFlipping": "hindsight.envs.bit_flipping", "PointReach": "hindsight.envs.point_reach"}


def register_environments() -> None:
    """Register our environments with Gymnasium; `import hindsight` calls this."""
    from gymnasium.envs.registration import register, registry

    for name, module in OURS.items():
        if f"{name}-v0" not in registry:
            register(f"{name}-v0", entry_point=f"{module}:{name}", vector_entry_point=f"{module}:{name}Vector")

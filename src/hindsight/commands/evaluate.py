"""`hindsight evaluate`: measure a policy on unseen episodes."""

from __future__ import annotations

from pathlib import Path

from ..her import HER
from ..report.run import environment_name
from ..training.evaluate import Evaluation, evaluate
from .terminal import progress


def evaluate_run(
    run: Path, env: str | None, *, episodes: int, seed: int, workers: int
) -> tuple[dict[str, object], Evaluation]:
    """Evaluate a policy, show how far it is on stderr, and return facts about the policy and the evaluation.

    env: the id of the environment, None for the run's own.
    """
    with HER.load(run, env, workers=workers, engine="processes", ray_address=None) as model:
        outcomes = progress(evaluate(model.source, model.weights, seed, range(episodes)), episodes, "episodes")
        result = Evaluation(tuple(outcomes))
        name = environment_name(model.spec.env_id, model.settings.rollout.env_options)
        return {"environment": name, "agent": model.settings.agent, "seed": seed}, result

"""`hindsight evaluate`: measure a policy on unseen episodes."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from ..her import HER
from ..report.run import environment_name
from ..training.evaluate import Evaluation, evaluate
from .terminal import Display, proportional


def evaluate_run(
    run: Path, env: str | None, *, episodes: int, seed: int, workers: int
) -> tuple[dict[str, object], Evaluation]:
    """Evaluate a policy, show how far it is on stderr, and return facts about the policy and the evaluation.

    env: the id of the environment, None for the run's own.
    """
    with HER.load(run, env, workers=workers, engine="processes", ray_address=None) as model:
        outcomes, started = [], time.monotonic()
        with Display(episodes, Console(stderr=True)) as display:
            for outcome in evaluate(model.source, model.weights, seed, range(episodes)):
                outcomes.append(outcome)
                done, successes = len(outcomes), sum(o.success for o in outcomes)
                left = proportional(time.monotonic() - started, done, episodes)
                display.show(done, f"{done}/{episodes} episodes  success {successes / done:.0%}  {left}")
        name = environment_name(model.spec.env_id, model.settings.rollout.env_options)
        return {"environment": name, "agent": model.settings.agent, "seed": seed}, Evaluation(tuple(outcomes))

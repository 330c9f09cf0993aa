"""`hindsight-rl infer`: play the first episodes of a run, find the structure of the task, and write it as a recipe."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..her import HER
from ..recipes.files import write_recipe
from ..structure import Finding
from ..training.counts import Counts


def infer_task(environment: str, steps: int, seed: int) -> tuple[list[Finding], list[str], Counts]:
    """Play the warm-up of a run, with `steps` random steps at least, and return what it shows, what not, and the counts.

    Raises what making and playing the environment raises, and InputError for a task without flat observations.
    """
    with HER(environment, recipe="default", structure="inferred", seed=seed, random_steps=steps) as model:
        trainer = model.trainer
        if trainer.search is None:
            raise InputError("Structure is inferred from flat arrays of floats: observations, goals and actions.")
        while trainer.search.is_warm_up:
            trainer.learn_from_next_job()
        return trainer.search.findings, trainer.search.missing, trainer.counts


def save_findings(environment: str, findings: list[Finding], path: Path) -> None:
    """Write the options that were found as a recipe, each with its evidence. Raises FileError."""
    title = f"Inferred from random and probing steps of {environment}."
    options = {finding.option: finding.value for finding in findings}
    write_recipe(path, title, {"automatic": True}, options, {finding.option: finding.evidence for finding in findings})

"""`hindsight-rl infer`: play the first episodes of a run, find the structure of the task, and write it as a recipe."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError
from ..her import HER
from ..options import Choice
from ..recipes.files import write_recipe
from ..training.counts import Counts


def infer_task(environment: str, steps: int, seed: int) -> tuple[list[Choice], list[str], Counts]:
    """Play the warm-up of a run, with `steps` random steps at least, and return what it shows, what not, and the counts.

    Raises what making and playing the environment raises, and InputError for a task without flat observations.
    """
    with HER(environment, recipe="default", structure="inferred", seed=seed, random_steps=steps) as model:
        trainer = model.trainer
        if trainer.search is None:
            raise InputError("Structure is inferred from flat arrays of floats: observations, goals and actions.")
        while trainer.search.is_warm_up:
            trainer.learn_from_next_job()
        return list(trainer.search.state.found.structure), trainer.search.missing, trainer.counts


def save_choices(environment: str, choices: list[Choice], path: Path) -> None:
    """Write the options that were found as a recipe, each with its evidence. Raises FileError."""
    title = f"Inferred from random and probing steps of {environment}."
    options = {choice.option: choice.value for choice in choices}
    write_recipe(path, title, {"automatic": True}, options, {choice.option: choice.reason for choice in choices})

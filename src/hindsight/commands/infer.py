"""`hindsight infer`: play the first episodes of a run, find the structure of the task in them, and write it as a recipe."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import FileError, InputError
from ..her import HER
from ..storage import save_bytes
from ..structure import Finding


def infer_task(environment: str, steps: int, seed: int) -> list[Finding]:
    """Play the warm-up of a run, with `steps` random steps at least, and return what it shows.

    Raises what making and playing the environment raises, and InputError for a task without flat observations.
    """
    with HER(environment, recipe="default", structure="inferred", seed=seed, random_steps=steps) as model:
        trainer = model.trainer
        if trainer.search is None:
            raise InputError("Structure is inferred from flat arrays of floats: observations, goals and actions.")
        while trainer.search.is_warm_up:
            trainer.learn_from_next_job()
        return trainer.search.findings


def write_recipe(environment: str, findings: list[Finding], path: Path) -> None:
    """Write the options that were found as a recipe, each with its evidence as a comment.

    Raises FileError for another suffix than .toml.
    """
    if path.suffix != ".toml":
        raise FileError(f"The path of a recipe must end in .toml, got {path}.")
    lines = [f"# Inferred from random and probing steps of {environment}.", "automatic = true", "", "[options]"]
    for finding in findings:
        value = list(finding.value) if isinstance(finding.value, tuple) else finding.value
        lines += [f"# {finding.evidence}", f"{finding.option} = {json.dumps(value)}"]
    save_bytes(path, ("\n".join(lines) + "\n").encode())

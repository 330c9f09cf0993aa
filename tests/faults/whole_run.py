"""A short run that writes every kind of file, and the content of its folder."""

import contextlib
import csv
import io
import json

from hindsight_rl import HER
from hindsight_rl.commands.train import Training
from hindsight_rl.storage import load_arrays

ENVIRONMENT = "PointReach-v0"
OPTIONS = {
    "max_episode_steps": 10,
    "policy_lag": 1,
    "steps": 120,
    "random_steps": 30,
    "capacity": 80,
    "hidden": (8,),
    "batch_size": 16,
    "updates_per_step": 0.5,
    "eval_every": 60,
    "eval_episodes": 2,
    "keep_every": 1,
    "checkpoint_every": 30,
    "log_every": 20,
    "solved_evaluations": 0,
}
NOT_COMPARED = {"lock", "report.html", "plotly.min.js", "checkpoint-previous.safetensors"}  # times, ids of processes
KINDS = {"checkpoint": "checkpoint", "buffer": "hindsight-rl buffer"}  # of safetensors files by their names, else "policy"
TIMES = {"begun", "sizes", "workers"}  # fields that depend on times, and an option that changes no result


def train(folder, workers=0):
    """Train in a folder to the end, or go on there, and save the buffer and the model too."""
    with contextlib.redirect_stdout(io.StringIO()), HER(ENVIRONMENT, workers=workers, **OPTIONS) as model:
        Training(model, ENVIRONMENT, folder, resume=True, trackers=()).run()
        model.trainer.buffer.save(folder / "buffer.safetensors")
        model.save(folder / "model.safetensors")


def content(folder):
    """Return what a run wrote, by file, without times. Files that were set aside are left out."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    compared = [path for path in paths if path.name not in NOT_COMPARED and "without-checkpoint" not in path.parts[0]]
    return {str(path): _content(folder / path) for path in sorted(compared)}


def _content(path):
    if path.suffix == ".safetensors":
        arrays, data = load_arrays(path, KINDS.get(path.stem, "policy"))
        return _timeless(data), {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}
    text = path.read_text()
    if path.suffix == ".jsonl":
        return [_timeless(json.loads(line)) for line in text.splitlines()]
    return _timeless(json.loads(text) if path.suffix == ".json" else list(csv.DictReader(text.splitlines())))


def _timeless(data):
    """Return plain data without what depends on times."""
    if isinstance(data, list):
        return [_timeless(value) for value in data]
    if not isinstance(data, dict):
        return data
    kept = {key: value for key, value in data.items() if "seconds" not in key and key not in TIMES}
    return {key: _timeless(value) for key, value in kept.items()}

"""Files whose sizes are forged, each read in little memory. A script: it prints what became of each, as JSON.

python tests/forged_files.py FOLDER
"""

import copy
import json
import os
import resource
import shutil
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
from gymnasium import spaces

from hindsight_rl import HER, HindsightBuffer
from hindsight_rl.recipes import load_recipe
from hindsight_rl.recipes.files import load_suite
from hindsight_rl.report.run import read_run
from hindsight_rl.storage import load_arrays, save_arrays
from hindsight_rl.training.checkpoint import restore_trainer, trainer_state
from hindsight_rl.training.run_folder import RunFolder

MEMORY = 200 << 20  # bytes of address space beyond what the process has when it begins to read
SECONDS = 5  # of processor time, for one file
HUGE = 10**9
LARGE_FILE = 50 << 30
IMAGE = {"shape": [20_000, 20_000, 3], "dtype": "uint8", "low": [0.0], "high": [255.0], "n_values": None}
DISCRETE = {"shape": [], "dtype": "int64", "low": [0.0], "high": [1e9], "n_values": HUGE}
SUBGOAL = "reach achieved=0,1 goal=2,3 tolerance=0.03 switch_distance=0.15"
MIRROR = "o0=-o0 g0=-g0 a0=-a0"
TASKS = {  # changes of a task, in a policy file and in a buffer
    "observation": {"spec.observation.shape": [HUGE]},
    "shape with many axes": {"spec.observation.shape": [1] * 10**5},
    "shape with long numbers": {"spec.observation.shape": [10**1000] * 100},
    "goal": {"spec.goal.shape": [HUGE]},
    "action": {"spec.action.shape": [HUGE]},
    "image": {"spec.observation": IMAGE},
    "bounds that are no numbers": {"spec.observation.low": ["x"] * 3 * 10**5},
    "dtype": {"spec.observation.dtype": "f4," * 10**5},
    "long text as dtype": {"spec.observation.dtype": "S2000000000"},
}
POLICIES = TASKS | {
    "hidden column": {
        "spec.observation.shape": [HUGE],
        "settings.options.hidden_observation": [0],
        "settings.options.goal_features": "relative",
    },
    "hidden dimension of the goal": {
        "spec.goal.shape": [HUGE],
        "settings.options.hidden_goal": [0],
        "settings.options.goal_features": "relative",
    },
    "discrete observation": {"spec.observation": DISCRETE},
    "discrete action": {"spec.action": DISCRETE},
    "id": {"spec.env_id": "x" * 10**6},
    "agent": {"settings.agent": "x" * 10**6},
    "layers": {"settings.options.hidden": [4096] * 16},
    "many layers": {"settings.options.hidden": ["x"] * 3 * 10**5},
    "channels": {"settings.options.image_channels": [HUGE]},
    "critics": {"settings.options.n_critics": 100, "settings.options.hidden": [8]},
    "waypoints": {"settings.options.n_waypoints": 1000},
    "capacity": {"settings.options.capacity": 10**15},
    "batch": {"settings.options.batch_size": HUGE},
    "threads": {"settings.options.threads": HUGE},
    "column": {"settings.options.hidden_observation": [10**18]},
    "columns": {"settings.options.column_differences": ["999999999999-0"] * 10**5},
    "rotations": {"settings.options.rotations": ["9," * 10**5 + "9"]},
    "subgoals": {"settings.options.subgoals": [SUBGOAL] * 10**4},
    "column of a subgoal": {"settings.options.subgoals": [SUBGOAL.replace("2,3", "2,999999999999")]},
    "symmetries": {"settings.options.symmetries": [MIRROR] * 10**5},
    "deep entry": {"settings.options.env_options": ["a=" + "[" * 90_000]},
    "dotted entry": {"settings.options.env_options": ["a." * 40_000 + "a=1"]},
    "unknown options": {f"settings.options.x{i}": 1 for i in range(10**4)},
}
BUFFERS = TASKS | {
    "capacity": {"capacity": 10**12},
    "environments": {"n_envs": HUGE},
    "stored goals": {"options.n_sampled_goal": 1000, "options.relabel_at": "episode_end"},
    "infos": {"options.info_keys": [f"k{i}" for i in range(10**4)]},
    "symmetries": {"options.symmetries": [MIRROR] * 1000},
    "order of the symmetries": {"options.symmetries": ["o0=1.5-o0", "o0=2.5-o0"]},
    "subgoals": {"subgoals": [SUBGOAL] * 10**5},
    "dtype of the rows": {"dtype": "f4," * 10**6},
}
CHECKPOINTS = {
    "columns that were found": {"search.found.structure": [["column_differences", ["1-0"] * 10**4, "x"]]},
    "cluster that was found": {"search.found.structure": [["ray_address", "10.0.0.1:6379", "x"]]},
    "restarts": {"search.restarted_at": ["x"] * 10**6},
    "counts": {"meter.sums": {f"x{i}": "x" for i in range(10**5)}},
    "buffer": {"buffer.capacity": 10**12},
}
SPARSE = ("settings.json", "ended.json", "metrics.jsonl", "evaluations.jsonl", "episodes.jsonl", "changes.jsonl")


class TooSlowError(BaseException):
    """Raised when a reader takes too long. No reader catches it."""


def stop(number, frame):
    raise TooSlowError(f"more than {SECONDS} s")


def forged(data, changes):
    """Return a copy of plain data with some values replaced. changes: by the path of the value, as in "a.b"."""
    data = copy.deepcopy(data)
    for path, value in changes.items():
        *parents, name = path.split(".")
        place = data
        for parent in parents:
            place = place[parent]
        place[name] = value
    return data


def compute_reward(achieved, goal, info):
    return -(np.abs(achieved - goal).max(-1) > 0.1).astype(np.float32)


def use_policy(path):
    with HER.load(path) as model:
        return model.agent


def policy_cases(folder):
    path = folder / "policy.safetensors"
    with HER("PointReach-v0", hidden=(8,), structure="none") as model:
        model.save(path)
    use_policy(path)
    arrays, data = load_arrays(path, "policy")
    for name, changes in POLICIES.items():
        write = lambda changes=changes: save_arrays(path, "policy", arrays, forged(data, changes))  # noqa: E731
        yield f"policy: {name}", write, lambda: use_policy(path)


def buffer_cases(folder):
    path, box = folder / "buffer.safetensors", spaces.Box(-1, 1, (4,), np.float32)
    keys = ("observation", "achieved_goal", "desired_goal")
    buffer = HindsightBuffer(40, spaces.Dict(dict.fromkeys(keys, box)), box, compute_reward)
    rows = np.zeros((6, 4), np.float32)
    for step in range(5):
        before, after = (dict.fromkeys(keys, rows[i].copy()) for i in (step, step + 1))
        buffer.add(before, rows[step], 0.0, after, False, step == 4)
    buffer.save(path)
    HindsightBuffer.load(path, compute_reward).sample(4)
    arrays, data = load_arrays(path, "hindsight-rl buffer")
    for name, changes in BUFFERS.items():
        write = lambda changes=changes: save_arrays(path, "hindsight-rl buffer", arrays, forged(data, changes))  # noqa: E731
        yield f"buffer: {name}", write, lambda: HindsightBuffer.load(path, compute_reward).sample(4)


def run_cases(folder):
    """Yield a checkpoint with forged values, and each file of a run with 50 GB."""
    model = HER("PointReach-v0", hidden=(64, 64), structure="inferred", capacity=2_000, random_steps=100)
    run = folder / "run"
    with RunFolder(run, model.settings, model.spec) as files:
        files.begin()
        model.learn(60)
        files.finish(model.trainer)
    model.saved_model().write(run / "policies/best.safetensors")
    arrays, data = trainer_state(model.trainer)
    data = json.loads(json.dumps(data))
    restore_trainer(model.trainer, arrays, data)
    for name, changes in CHECKPOINTS.items():
        state = forged(data, changes)
        yield f"checkpoint: {name}", lambda: None, lambda state=state: restore_trainer(model.trainer, arrays, state)
    for name in SPARSE:
        yield f"run: {name} of 50 GB", lambda name=name: replace_sparse(folder, name), lambda: read_run(folder / "damaged")
    path = run / "policies/best.safetensors"
    yield "policy: 50 GB of weights", lambda: os.truncate(path, LARGE_FILE), lambda: use_policy(run)


def replace_sparse(folder, name):
    shutil.rmtree(folder / "damaged", ignore_errors=True)
    shutil.copytree(folder / "run", folder / "damaged", ignore=shutil.ignore_patterns("policies"))
    with (folder / "damaged" / name).open("ab") as file:
        file.truncate(LARGE_FILE)


def text_cases(folder):
    for name, read in (("recipe", load_recipe), ("suite", load_suite)):
        path = folder / f"{name}.toml"
        path.touch()
        use = lambda path=path, read=read: read(str(path))  # noqa: E731
        yield f"{name} of 50 GB", lambda path=path: os.truncate(path, LARGE_FILE), use
        yield f"{name} with a long key", lambda path=path: path.write_text("a." * 40_000 + "a = 1"), use


def outcome(read):
    """Return the name and the message of the error of a reader."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        read()
    except (Exception, TooSlowError) as problem:
        return type(problem).__name__, str(problem)[:500]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "none", "it was loaded"


def address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main(folder):
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, stop)
    cases = [*policy_cases(folder), *buffer_cases(folder), *run_cases(folder), *text_cases(folder)]
    limit = address_space() + MEMORY
    for name, write, read in cases:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        write()
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        print(json.dumps([name, *outcome(read)]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

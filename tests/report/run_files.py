"""Run folders with chosen numbers, in the format that training writes."""

import json

OPTIONS = {"seed": 0, "discount": 0.9, "solved_at": 0.95, "solved_evaluations": 2, "tau": 0.05, "hidden": [64, 64]}
EXPLAINED = {
    "seed": {"part": "training", "meaning": "seed of all random numbers", "default": 0, "source": "default"},
    "discount": {"part": "agent", "meaning": "discount per step", "default": 0.98, "recipe": 0.95, "source": "given"},
    "tau": {
        "part": "agent",
        "meaning": "Polyak rate of the target networks",
        "default": 0.005,
        "recipe": 0.05,
        "source": "recipe",
    },
    "hidden": {"part": "agent", "meaning": "units of the hidden layers", "default": [64, 64], "source": "default"},
}
SPEC = {"env_id": "Task-v0", "reward_low": -1.0, "reward_high": 0.0, "max_episode_steps": 50}


def write_run(path, rates=(0.0, 0.5, 1.0, 1.0), agent="td3", seed=0, spec=SPEC, goals=None, **columns):
    """Write a run with an evaluation of ten episodes every 100 steps, and a training episode before each.

    rates: success rate of each evaluation.
    goals: episode number -> desired goal of the evaluation episodes.
    columns: further metrics, one value per record each.
    """
    path.mkdir(parents=True)
    settings = {"agent": agent, "recipe": "mine", "options": OPTIONS | {"seed": seed}, "spec": spec, "explained": EXPLAINED}
    settings["machine"] = {"python": "3.11", "cores": 2, "versions": {"numpy": "2.0"}}
    (path / "settings.json").write_text(json.dumps(settings))
    goals = goals or (lambda n: [n / 10, -n / 10, 0.425])
    metrics, evaluations, episodes = [], [], []
    for i, rate in enumerate(rates):
        steps = 100 * (i + 1)
        record = {"env_steps": steps, "episodes": 2 * (i + 1), "updates": 10 * steps, "seconds": 2.0 * (i + 1)}
        record |= {"collect_seconds": 0.5 * (i + 1), "update_seconds": 1.5 * (i + 1)}
        record |= {"train/return": -50.0, "train/episode_steps": 50}
        record |= {"test/episodes": 10, "test/success_rate": rate, "test/return_mean": -50 * (1 - rate)}
        record |= {"test/return_std": 1.0, "test/success_low": rate / 2, "test/success_high": (1 + rate) / 2}
        record |= {"test/final_distance": 1 - rate, "train/critic_loss": 0.5, "train/q_mean": -5.0}
        metrics.append(record | {name: values[i] for name, values in columns.items()})
        for n in range(10):
            line = {"env_steps": steps, "success": n < 10 * rate, "desired_goal": goals(n), "final_distance": 0.1}
            evaluations.append(line)
        goal = goals(3)
        episodes.append({"env_steps": steps, "success": True, "final_goal": goals(2), "desired_goal": goal})
    for name, records in (("metrics", metrics), ("evaluations", evaluations), ("episodes", episodes)):
        (path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def change_settings(path, **changes):
    """Change settings.json of a run. `options` are added to those that it has."""
    place = path / "settings.json"
    settings = json.loads(place.read_text())
    settings["options"] |= changes.pop("options", {})
    place.write_text(json.dumps(settings | changes))
    return path


def write_changes(path, *changes):
    """Write changes of options: steps, seconds, the name of an option or "", and why a new agent took over or ""."""
    lines = []
    for env_steps, seconds, option, new_agent in changes:
        changed = [{"option": option, "before": 0.1, "value": 0.2, "reason": "the goal rests"}] * bool(option)
        lines.append({"env_steps": env_steps, "seconds": seconds, "changes": changed, "new_agent": new_agent})
    (path / "changes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

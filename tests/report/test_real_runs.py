"""Pages of short real runs: every number on them is recomputed from the files of the run."""

import json

import numpy as np
import pytest

from hindsight_rl.report.page import run_page
from hindsight_rl.report.run import read_run
from hindsight_rl.report.verdict import solved_at_step

pytest.importorskip("torch", reason="training needs torch")

RUNS = {
    "dqn": ("BitFlipping-v0", {"env_options": ("n_bits=4",), "steps": 600, "eval_every": 100, "log_every": 50}),
    "qrdqn": ("BitFlipping-v0", {"env_options": ("n_bits=12",), "steps": 200, "eval_every": 100, "n_sampled_goal": 0}),
    "sac": ("PointReach-v0", {"steps": 300, "eval_every": 100, "log_every": 100, "updates_per_step": 0.5}),
}


@pytest.fixture(scope="module", params=RUNS)
def folder(request, tmp_path_factory):
    """Train briefly, as `hindsight-rl train` does."""
    from hindsight_rl import HER
    from hindsight_rl.training.run_folder import RunFolder

    path = tmp_path_factory.mktemp("runs") / request.param
    environment, options = RUNS[request.param]
    with (
        HER(environment, agent=request.param, seed=0, **options) as model,
        RunFolder(path, model.settings, model.spec) as files,
    ):
        files.begin()
        for event in model.trainer.run(model.settings.training.steps):
            files.listen(model.trainer, event)
        files.finish(model.trainer)
    return path


def lines(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def metrics(folder):
    """Return the records by steps: an evaluation that ends late is recorded late."""
    return sorted(lines(folder, "metrics"), key=lambda record: record["env_steps"])


def test_the_verdict_agrees_with_the_evaluated_episodes(folder):
    page, evaluations = run_page(read_run(folder)), lines(folder, "evaluations")
    by_steps = {}
    for line in evaluations:
        by_steps.setdefault(line["env_steps"], []).append(line["success"])
    rates = {steps: float(np.mean(successes)) for steps, successes in by_steps.items()}
    last = max(rates)
    is_solved = any(a >= 0.95 and b >= 0.95 for a, b in zip(rates.values(), list(rates.values())[1:], strict=False))
    assert (solved_at_step(read_run(folder)) is not None) == is_solved
    assert (page.verdict.level == "good") == (is_solved and rates[last] >= 0.95)
    count = f"Last evaluation, at {last:,} steps of training: {rates[last]:.0%} of {len(by_steps[last])} episodes succeed"
    assert count in page.verdict.text
    reason = {"solved": "because it was solved", "steps": "after all its steps"}
    why = json.loads((folder / "ended.json").read_text())["why"]
    assert page.verdict.text.endswith(f"The run ended {reason[why]}.")


def test_the_tiles_agree_with_the_last_record(folder):
    tiles, last = {label: value for label, value, _ in run_page(read_run(folder)).tiles}, {}
    for record in metrics(folder):
        last |= record
    assert last["check_steps"] > 0
    assert tiles["environment steps"] == f"{last['env_steps'] + last['check_steps']:,}"
    assert tiles["updates"] == f"{last['updates']:,}"
    assert float(tiles["final distance"]) == pytest.approx(last["test/final_distance"], rel=1e-2)


def test_every_plot_agrees_with_the_files(folder):
    page, records = run_page(read_run(folder)), metrics(folder)
    plots = {plot.key: plot for section in page.sections for plot in section.plots}
    for key, metric in (("success-env_steps", "test/success_rate"), ("return-env_steps", "test/return_mean")):
        [curve] = [curve for curve in plots[key].curves if curve["name"] == "evaluation"]
        known = [record for record in records if metric in record]
        assert curve["x"] == [record["env_steps"] for record in known]
        assert curve["y"] == pytest.approx([record[metric] for record in known], rel=1e-5)
    for key in ("critic_loss", "actor_loss", "entropy_coefficient", "goals_already_achieved"):
        known = [record for record in records if f"train/{key}" in record]
        assert (key in plots) == bool(known)
        if known:
            assert plots[key].curves[-1]["y"] == pytest.approx([record[f"train/{key}"] for record in known], rel=1e-5)


def test_every_goal_is_drawn_where_it_is(folder):
    """Positions are exact to six digits. Bits are moved by less than a tenth."""
    [section] = [section for section in run_page(read_run(folder)).sections if section.key == "goals"]
    evaluations, episodes = lines(folder, "evaluations"), lines(folder, "episodes")
    goals = np.array([line["desired_goal"][:3] for line in evaluations])
    tolerance = 0.09 if (goals == np.round(goals)).all() else 1e-5
    assert ("moved by less than 0.1" in section.plots[0].caption) == (tolerance == 0.09)
    for plot in section.plots:
        across, up = (int(plot.goals[title].removeprefix("goal[")[0]) for title in ("x_title", "y_title"))
        for points, expected in (
            (plot.goals["evaluated"], goals),
            (plot.goals["trained"], np.array([line["final_goal"] for line in episodes])),
        ):
            assert np.abs(np.array(points["x"]) - expected[:, across]).max() < tolerance
            assert np.abs(np.array(points["y"]) - expected[:, up]).max() < tolerance
        assert plot.goals["evaluated"]["success"] == [line["success"] for line in evaluations]

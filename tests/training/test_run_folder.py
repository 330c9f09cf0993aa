import json

import pytest

from hindsight_rl import HER, PointReach
from hindsight_rl.errors import FileError, OptionError
from hindsight_rl.training.checkpoint import CHECKPOINT
from hindsight_rl.training.evaluate import Evaluation, Outcome
from hindsight_rl.training.events import EvaluationFinished, JobFinished, Snapshot
from hindsight_rl.training.run_folder import ENDING, Ending, RunFolder, read_ending
from hindsight_rl.training.saved_model import SavedModel

OPTIONS = {"hidden": (8,), "batch_size": 16, "updates_per_step": 1.0, "random_steps": 20, "solved_evaluations": 0}


def short():
    return PointReach(max_steps=10)


@pytest.fixture
def model():
    with HER(short, recipe="point_reach", eval_every=30, eval_episodes=4, log_every=10, keep_every=2, **OPTIONS) as model:
        yield model


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def run(model, path, steps):
    with RunFolder(path, model.settings, model.spec) as folder:
        folder.begin()
        for event in model.trainer.run(steps):
            folder.listen(model.trainer, event)
        folder.finish(model.trainer)


def test_metrics_carry_the_evaluation_of_their_own_step(model, tmp_path):
    run(model, tmp_path, 95)
    lines = records(tmp_path / "metrics.jsonl")
    assert [r["env_steps"] for r in lines] == [10, 20, 40, 30, 50, 70, 60, 80, 90, 100]  # evaluations take effect later
    outcomes = records(tmp_path / "evaluations.jsonl")
    for record in lines:
        of_step = [o for o in outcomes if o["env_steps"] == record["env_steps"]]
        assert ("test/success_rate" in record) == bool(of_step)
        if of_step:
            assert record["test/success_rate"] == sum(o["success"] for o in of_step) / 4
            assert record["test/return_mean"] == pytest.approx(sum(o["episode_return"] for o in of_step) / 4)
            assert record["test/success_low"] <= record["test/success_rate"] <= record["test/success_high"]
    assert {o["env_steps"] for o in outcomes} == {30, 60, 90, 100}
    table = (tmp_path / "progress.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table[1:]] == [str(steps) for steps in range(10, 101, 10)]
    assert {"train/critic_loss", "test/success_rate", "seconds"} <= set(table[0].split(","))


def test_best_is_the_policy_of_the_best_evaluation(model, tmp_path):
    def evaluation(rate):
        return Evaluation(tuple(Outcome(i, i, (0.0,), (0.0,), i < 10 * rate, -1.0, 0.0, 1) for i in range(10)))

    trainer, weights = model.trainer, []
    with RunFolder(tmp_path, model.settings, model.spec) as folder:
        folder.begin()
        for rate, is_best in ((0.2, True), (0.9, True), (0.5, False)):
            trainer.learn_from_next_job()
            trainer.learn_from_next_job()
            trainer.learn_from_next_job()
            trainer.history.append({"env_steps": 0.0, "success_rate": rate, "return_mean": -1.0})
            snapshot = Snapshot.take(trainer.agent, trainer.counts, {})
            folder.listen(trainer, EvaluationFinished(evaluation(rate), is_best, snapshot))
            weights.append(trainer.agent.policy_weights().flat.tobytes())
    saved = {p.stem: SavedModel.read(p) for p in (tmp_path / "policies").iterdir()}
    assert saved["best"].weights.flat.tobytes() == weights[1]
    assert saved["latest"].weights.flat.tobytes() == weights[2]
    assert sorted(saved) == ["00000060", "best", "latest"]  # the second of every two is kept under its steps


def test_a_run_without_evaluations_leaves_a_policy(tmp_path):
    with HER(short, recipe="point_reach", eval_every=0, **OPTIONS) as model:
        run(model, tmp_path, 40)
        assert SavedModel.read(tmp_path).facts["env_steps"] == 40
    assert records(tmp_path / "metrics.jsonl")[-1]["env_steps"] == 40


def test_checkpoints_come_every_so_many_steps(tmp_path):
    with HER(short, recipe="point_reach", eval_every=0, checkpoint_every=30, **OPTIONS) as model:
        with RunFolder(tmp_path, model.settings, model.spec) as folder:
            folder.begin()
            seen = []
            for _ in range(4):
                model.trainer.learn_from_next_job()
                folder.listen(model.trainer, JobFinished())
                seen.append((tmp_path / CHECKPOINT).exists())
        assert seen == [False, False, True, True]


def test_files_that_a_killed_process_left_unfinished_are_removed(model, tmp_path):
    (tmp_path / "checkpoint.safetensors.tmp-77").touch()
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "best.safetensors.tmp-77").touch()
    with RunFolder(tmp_path, model.settings, model.spec):
        assert not list(tmp_path.rglob("*tmp*"))


@pytest.mark.parametrize("content", ["{}", "[]", '{"options": []}', "{", '{"options": {}, "spec": {}}'])
def test_damaged_settings_are_named(model, tmp_path, content):
    (tmp_path / "settings.json").write_text(content)
    with (
        RunFolder(tmp_path, model.settings, model.spec) as folder,
        pytest.raises((FileError, OptionError), match=r"settings|malformed"),
    ):
        folder.resume(model.trainer)


def test_the_names_of_other_libraries_are_among_the_metrics(model, tmp_path):
    run(model, tmp_path, 95)
    lines = records(tmp_path / "metrics.jsonl")
    evaluated = [line for line in lines if "test/success_rate" in line]
    rates = [line["test/success_rate"] for line in evaluated]
    assert [line["eval/success_rate"] for line in evaluated] == rates
    assert [line["eval/mean_success_rate"] for line in evaluated] == pytest.approx(
        [sum(rates[: n + 1]) / (n + 1) for n in range(4)]
    )
    assert sorted(line["train/episode"] for line in lines) == list(range(1, 11))
    assert all(
        {"stats_o/mean", "stats_o/std", "stats_g/mean", "stats_g/std", "train/success_rate"} <= set(r) for r in lines
    )
    assert all(-50.0 <= line["test/mean_q"] <= 5.0 for line in evaluated)
    columns = (tmp_path / "progress.csv").read_text().splitlines()[0].split(",")
    assert {"eval/success_rate", "eval/mean_success_rate", "test/mean_q", "train/episode", "stats_g/std"} <= set(columns)


def test_every_training_episode_has_a_line(model, tmp_path):
    run(model, tmp_path, 40)
    lines = records(tmp_path / "episodes.jsonl")
    assert [(line["env_steps"], line["episode"], line["steps"]) for line in lines] == [
        (10 * (n + 1), n, 10) for n in range(4)
    ]
    means = [line["train/return"] for line in records(tmp_path / "metrics.jsonl")]
    assert [line["return"] for line in lines] == pytest.approx(means)
    assert all(len(line["final_goal"]) == len(line["desired_goal"]) == 2 for line in lines)


def test_the_settings_are_written_with_an_explanation_of_each(model, tmp_path):
    run(model, tmp_path, 20)
    settings = json.loads((tmp_path / "settings.json").read_text())
    names = {"agent", "recipe", "variant", "options", "spec", "machine", "begun", "explained", "check", "demonstrations"}
    assert names | {"declared", "name", "reasons", "changed", "findings", "not_found", "not_used"} == set(settings)
    assert set(settings["explained"]) == set(settings["options"])


def test_a_run_folder_says_how_the_run_ended_until_it_goes_on(model, tmp_path):
    run(model, tmp_path, 40)  # of more
    assert read_ending(tmp_path) == Ending("stopped", 40)
    with RunFolder(tmp_path, model.settings, model.spec) as folder:
        folder.resume(model.trainer)
        assert read_ending(tmp_path) is None
    (tmp_path / ENDING).write_text("{}")
    with pytest.raises(FileError, match="damaged"):
        read_ending(tmp_path)


@pytest.mark.parametrize(("rates", "steps", "why"), [([], 30, "steps"), ([1.0], 200, "solved"), ([0.9], 200, "stopped")])
def test_a_run_is_over_with_all_its_steps_or_when_it_is_solved(tmp_path, rates, steps, why):
    options = OPTIONS | {"eval_every": 0, "steps": steps, "solved_evaluations": 1}
    with HER(short, recipe="point_reach", **options) as model, RunFolder(tmp_path, model.settings, model.spec) as folder:
        folder.begin()
        list(model.trainer.run(30))
        model.trainer.history.extend({"env_steps": 30.0, "success_rate": r, "return_mean": 0.0} for r in rates)
        folder.finish(model.trainer)
    assert read_ending(tmp_path) == Ending(why, 30)

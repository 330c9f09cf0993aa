import json

import pytest

from hindsight_rl import HER, PointReach
from hindsight_rl.callbacks import EvaluateEvery, KeepEvery, StopAtSuccess, View
from hindsight_rl.errors import OptionError, RunFolderError

SMALL = {"hidden": (8,), "batch_size": 16, "updates_per_step": 1.0, "random_steps": 20, "log_every": 20}


@pytest.fixture
def model():
    with HER(lambda: PointReach(max_steps=10), recipe="point_reach", **SMALL) as model:
        yield model


def test_evaluations_come_every_so_many_steps(model):
    evaluate = EvaluateEvery(30, episodes=2)
    model.learn(100, callback=evaluate)
    assert [steps for steps, _ in evaluate.history] == [30, 60, 90]
    assert all(len(e.outcomes) == 2 for _, e in evaluate.history)


def test_models_are_kept_every_so_many_steps(model, tmp_path):
    model.learn(50, callback=[KeepEvery(20, tmp_path), lambda view: None])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000020.safetensors", "00000040.safetensors"]
    HER.load(tmp_path / "00000040.safetensors")


def test_stopping_at_a_success_rate(model):
    def view(rate):
        return View(0, 0, 0, rate, 0.0, model)

    stop = StopAtSuccess(0.75, window=4)
    assert [stop(view(r)) for r in (1.0, 1.0, None, 0.0, 0.0, 1.0, 1.0, 1.0)] == [True] * 7 + [False]
    seen = []
    model.learn(1000, callback=[lambda view: seen.append(view.num_timesteps) or len(seen) < 3, EvaluateEvery(1000)])
    assert seen == [10, 20, 30]


def test_values_out_of_range_are_refused():
    for make in (
        lambda: EvaluateEvery(0),
        lambda: KeepEvery(-1, "."),
        lambda: StopAtSuccess(1.5),
        lambda: StopAtSuccess(0.5, 0),
    ):
        with pytest.raises(OptionError, match=r"at least 1|between 0 and 1"):
            make()


def test_what_a_callback_records_is_in_the_files_of_the_run(model, tmp_path):
    evaluate = EvaluateEvery(30, episodes=2)
    model.learn(
        50, callback=[evaluate, lambda view: view.record("mine/steps", view.num_timesteps)], folder=tmp_path / "run"
    )
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [(r["env_steps"], r.get("mine/steps")) for r in records] == [(20, 15), (30, None), (40, 35), (50, 50)]
    assert ["test/success_rate" in r for r in records] == [False, True, False, False]
    assert records[1]["test/success_rate"] == evaluate.history[0][1].success_rate
    outcomes = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    assert [json.loads(line)["env_steps"] for line in outcomes] == [30, 30]
    header = (tmp_path / "run" / "progress.csv").read_text().splitlines()[0].split(",")
    assert {"mine/steps", "eval/mean_success_rate", "train/return"} <= set(header)
    model.learn(30, folder=tmp_path / "run")  # the same model goes on in its folder
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count("\n") == 6
    assert HER.load(tmp_path / "run").saved_model().facts["env_steps"] == 80
    with HER(lambda: PointReach(max_steps=10), recipe="point_reach", **SMALL) as other:
        with pytest.raises(RunFolderError, match="in use"):
            other.learn(10, folder=tmp_path / "run")
        model.close()
        with pytest.raises(RunFolderError, match=r"already holds a run.*HER\.load\("):
            other.learn(10, folder=tmp_path / "run")

"""A run folder under a full disk, kills, damaged files, links and numbers that are not finite."""

import contextlib
import json
import math
import os
import shutil
import subprocess

import pytest
from short_runs import SMALL, her, same_bytes, short

from hindsight_rl import HER, storage
from hindsight_rl.errors import FileError, HindsightError, RunFolderError
from hindsight_rl.training import run_files
from hindsight_rl.training.checkpoint import CHECKPOINT, PREVIOUS, trainer_state
from hindsight_rl.training.evaluate import Evaluation, Outcome
from hindsight_rl.training.events import Snapshot
from hindsight_rl.training.run_folder import RunFolder
from hindsight_rl.training.saved_model import SavedModel


@pytest.fixture
def model():
    with her(eval_every=30, eval_episodes=4, log_every=10) as model:
        yield model


def folder_of(model, path):
    return RunFolder(path, model.settings, model.spec)


def train(model, folder, steps):
    for event in model.trainer.run(steps):
        folder.listen(model.trainer, event)


def run(model, path, steps):
    with folder_of(model, path) as folder:
        folder.begin()
        train(model, folder, steps)
        folder.finish(model.trainer)


def evaluated(trainer, rate, episode_return=-1.0):
    """Return the event of an evaluation of the agent as it is now."""
    outcomes = tuple(Outcome(i, i, (0.0,), (0.0,), i < 10 * rate, episode_return, 0.0, 1) for i in range(10))
    return trainer.evaluator._finish(
        Evaluation(outcomes, math.nan), Snapshot.take(trainer.agent, trainer.counts, trainer.meter.take_means())
    )


def fail_writing(monkeypatch, name):
    """Let every write of a file of this name fail."""

    def failing(real):
        def write(path, *arguments, **options):
            if getattr(path, "name", "") == name:
                raise OSError(28, "No space left on device")
            return real(path, *arguments, **options)

        return write

    for function in ("append_text", "save_file"):
        monkeypatch.setattr(storage, function, failing(getattr(storage, function)))


@pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.jsonl", "episodes.jsonl", "progress.csv"])
def test_one_file_that_cannot_be_written_does_not_keep_the_others_from_it(model, tmp_path, monkeypatch, name):
    with folder_of(model, tmp_path) as folder:
        folder.begin()
        with monkeypatch.context() as patch:
            fail_writing(patch, name)
            with pytest.warns(RuntimeWarning, match="No space left"):
                train(model, folder, 40)
        written = {path.name for path in tmp_path.rglob("*.*")}
        expected = {"metrics.jsonl", "evaluations.jsonl", "episodes.jsonl", "progress.csv"} - {name}
        assert expected | {"best.safetensors", "latest.safetensors"} <= written
        folder.finish(model.trainer)
    with folder_of(model, tmp_path) as folder:
        folder.resume(model.trainer)


def test_the_best_policy_is_written_later_if_it_could_not_be_written_at_once(model, tmp_path, monkeypatch):
    trainer = model.trainer
    with folder_of(model, tmp_path) as folder:
        folder.begin()
        folder.listen(trainer, evaluated(trainer, 0.2))
        trainer.learn_from_next_job()
        best = trainer.agent.policy_weights().flat.tobytes()
        with monkeypatch.context() as patch:
            fail_writing(patch, "best.safetensors")
            with pytest.warns(RuntimeWarning, match="No space left"):
                folder.listen(trainer, evaluated(trainer, 0.9))
        folder.listen(trainer, evaluated(trainer, 0.5))
    saved = SavedModel.read(tmp_path)
    assert saved.facts["success_rate"] == trainer.evaluator.best["success_rate"] == 0.9
    assert saved.weights.flat.tobytes() == best


@pytest.mark.parametrize("name", ["metrics.jsonl", "evaluations.jsonl", "episodes.jsonl"])
def test_lines_that_could_not_be_written_are_written_later_also_by_a_resumed_run(model, tmp_path, monkeypatch, name):
    with folder_of(model, tmp_path / "whole") as folder:
        folder.begin()
        train(model, folder, 40)
        train(model, folder, 60)
        folder.finish(model.trainer)
    with her(eval_every=30, eval_episodes=4, log_every=10) as again, folder_of(again, tmp_path / "run") as folder:
        folder.begin()
        with monkeypatch.context() as patch:
            fail_writing(patch, name)
            with pytest.warns(RuntimeWarning, match="No space left"):
                train(again, folder, 40)
            with pytest.warns(RuntimeWarning, match="No space left"):
                folder.save_checkpoint(again.trainer)
        assert not (tmp_path / "run" / name).exists()
    with her(eval_every=30, eval_episodes=4, log_every=10) as again, folder_of(again, tmp_path / "run") as folder:
        folder.resume(again.trainer)
        train(again, folder, 60)
        folder.finish(again.trainer)
    steps = [
        [record["env_steps"] for _, record in storage.read_lines(tmp_path / place / name)] for place in ("whole", "run")
    ]
    assert steps[0] == steps[1]


def test_a_run_without_its_last_lines_ends_with_an_error(model, tmp_path, monkeypatch):
    with folder_of(model, tmp_path) as folder:
        folder.begin()
        train(model, folder, 40)
        fail_writing(monkeypatch, "episodes.jsonl")
        with pytest.warns(RuntimeWarning, match="No space left"):
            train(model, folder, 60)
        with pytest.raises(OSError, match="No space left"), pytest.warns(RuntimeWarning):
            folder.finish(model.trainer)
    assert not (tmp_path / "ended.json").exists()


@pytest.fixture
def small_disk(tmp_path):
    """A real disk of 1 MB. Only root may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(path):
    """Write a file until the disk is full."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"\0" * 4096):
            pass


@pytest.mark.filterwarnings("ignore:.*No space left.*Training goes on:RuntimeWarning")
def test_a_disk_that_is_really_full_ends_the_run_with_the_checkpoint_to_go_on_from(small_disk):
    def fill_disk(view):
        if view.num_timesteps == 50:
            fill(small_disk / "large")

    path = small_disk / "my run"
    with her(checkpoint_every=30) as model:
        with pytest.raises(RunFolderError) as caught:
            model.learn(80, callback=fill_disk, folder=path)
        message = str(caught.value)
        assert "not written ([Errno 28] No space left on device" in message
        assert f"The last good checkpoint is {path}/checkpoint.safetensors, after 30 steps" in message
        assert f"--folder '{path}' and --resume goes on from it" in message
        expected = model.agent.state_dict()
    (small_disk / "large").unlink()
    with her(checkpoint_every=30) as again, folder_of(again, path) as folder:
        folder.resume(again.trainer)
        assert same_bytes(again.learn(50).agent.state_dict(), expected)
        folder.finish(again.trainer)


@pytest.mark.parametrize("function", ["truncate", "unlink"])
def test_a_folder_that_cannot_be_opened_is_free_for_the_next(model, tmp_path, monkeypatch, function):
    def fail(*arguments):
        raise OSError(5, "Input/output error")

    (tmp_path / "metrics.tmp-1").touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises((OSError, RunFolderError), match="Input/output error"):
            folder_of(model, tmp_path)
    folder_of(model, tmp_path).close()


def test_torn_lines_do_not_keep_a_run_from_going_on(model, tmp_path):
    run(model, tmp_path, 40)
    path = tmp_path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"env_steps": ' + b"".join(lines[1:]))
    with folder_of(model, tmp_path) as folder:
        folder.resume(model.trainer)
        train(model, folder, 60)
        folder.finish(model.trainer)
    lines = [record for _, record in storage.read_lines(path)]
    records = [record for record in lines if record is not None]
    assert len(records) < len(lines)
    assert records[-1]["env_steps"] == 60
    assert len((tmp_path / "progress.csv").read_text().splitlines()) == len(records) + 1


def test_the_table_holds_every_record_that_can_be_read(model, tmp_path):
    run(model, tmp_path, 20)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": "many", "\\ud800": 1}\n')
    with folder_of(model, tmp_path) as folder:
        folder._write_table()
    head, first, *_ = (tmp_path / "progress.csv").read_text().splitlines()
    assert head.endswith(",?")
    assert first.startswith("many,")


def test_a_table_that_would_be_too_large_does_not_end_the_run(model, tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, "MOST_CELLS", 10)
    with pytest.warns(RuntimeWarning, match="too many for a table"):
        run(model, tmp_path, 40)
    with folder_of(model, tmp_path) as folder, pytest.warns(RuntimeWarning, match="too many for a table"):
        folder.resume(model.trainer)


def test_numbers_that_are_not_finite_end_nothing(model, tmp_path):
    trainer = model.trainer
    trainer.learn_from_next_job()
    with folder_of(model, tmp_path) as folder:
        folder.begin()
        trainer.meter.add("mine", math.nan)
        folder.listen(trainer, evaluated(trainer, 0.5, math.nan))
        trainer.meter.add("mine", math.inf)
        folder.finish(trainer)
    [(_, record)] = storage.read_lines(tmp_path / "metrics.jsonl")
    assert (record["mine"], record["test/return_mean"], record["test/success_rate"]) == (None, None, 0.5)
    assert SavedModel.read(tmp_path).facts["return_mean"] is None
    with folder_of(model, tmp_path) as folder:
        folder.resume(trainer)
        assert trainer.history == [{"env_steps": 10.0, "episodes": 10.0, "success_rate": 0.5, "return_mean": None}]
        assert math.isnan(trainer.meter.means()["mine"])
        folder.listen(trainer, evaluated(trainer, 0.5, -1.0))
        folder.finish(trainer)
    assert SavedModel.read(tmp_path).facts["return_mean"] == -1.0


def test_resuming_in_an_empty_folder_begins_a_run(model, tmp_path):
    with folder_of(model, tmp_path / "new") as folder:
        folder.resume(model.trainer)
        assert folder.holds_a_run
        assert folder.notices == []


def test_files_of_a_run_without_a_checkpoint_are_set_aside_and_named(model, tmp_path):
    with folder_of(model, tmp_path) as folder:
        folder.begin()
        train(model, folder, 40)
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.suffix in (".jsonl", ".safetensors")}
    with her(eval_every=30, eval_episodes=4, log_every=10) as again, folder_of(again, tmp_path) as folder:
        folder.resume(again.trainer)
        [notice] = folder.notices
    aside = tmp_path / "without-checkpoint-1"
    assert str(aside) in notice
    assert before == {
        path.name: path.read_bytes() for path in aside.rglob("*") if path.suffix in (".jsonl", ".safetensors")
    }
    assert not (tmp_path / "metrics.jsonl").exists()


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_damaged_checkpoint_is_replaced_by_the_one_before_and_that_is_said(model, tmp_path):
    with folder_of(model, tmp_path) as folder:
        folder.begin()
        for steps in (40, 60):
            train(model, folder, steps)
            folder.save_checkpoint(model.trainer)
    expected = trainer_state(model.trainer)[0]
    flip(tmp_path / CHECKPOINT)
    with her(eval_every=30, eval_episodes=4, log_every=10) as again, folder_of(again, tmp_path) as folder:
        folder.resume(again.trainer)
        assert again.trainer.counts.env_steps == 40
        [notice] = folder.notices
        assert PREVIOUS in notice
        assert "SHA-256" in notice
        assert [record["env_steps"] for _, record in storage.read_lines(tmp_path / "metrics.jsonl")][-1] == 40
        train(again, folder, 60)
        assert same_bytes(trainer_state(again.trainer)[0], expected)
        flip(tmp_path / PREVIOUS)
        with pytest.raises(FileError, match="SHA-256"):
            folder.resume(again.trainer)


@pytest.mark.parametrize("missing", ["options", "spec", "begun"])
def test_settings_that_lack_a_part_are_refused_before_anything_changes(model, tmp_path, missing):
    run(model, tmp_path, 20)
    place = tmp_path / "settings.json"
    data = json.loads(place.read_text())
    del data[missing]
    place.write_text(json.dumps(data))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    with folder_of(model, tmp_path) as folder, pytest.raises(FileError, match=r"settings\.json does not hold the settings"):
        folder.resume(model.trainer)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}


@pytest.mark.parametrize(
    "change", [{"trainer": {}}, {"sizes": None}, {"sizes": {"metrics.jsonl": "x"}}, {"logged_at": "x"}]
)
def test_a_malformed_checkpoint_is_refused(model, tmp_path, change):
    run(model, tmp_path, 20)
    arrays, data = storage.load_arrays(tmp_path / CHECKPOINT, "checkpoint")
    storage.save_arrays(tmp_path / CHECKPOINT, "checkpoint", arrays, data | change)
    with folder_of(model, tmp_path) as folder, pytest.raises(FileError):
        folder.resume(model.trainer)


@pytest.mark.parametrize(
    "name", ["lock", "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl", "progress.csv", "policies"]
)
def test_links_in_a_run_folder_are_not_followed(model, tmp_path, name):
    run(model, tmp_path / "run", 40)
    mine = tmp_path / "mine"
    if name == "policies":
        mine.mkdir()
        (mine / "latest.safetensors").write_text("important")
        shutil.rmtree(tmp_path / "run" / name)
    else:
        mine.write_text("important")
        (tmp_path / "run" / name).unlink()
    (tmp_path / "run" / name).symlink_to(mine)
    with pytest.raises(RunFolderError, match=f"{name} is a symbolic link"):
        folder_of(model, tmp_path / "run")
    assert "important" in (mine / "latest.safetensors" if mine.is_dir() else mine).read_text()


@pytest.mark.parametrize("problem", [KeyboardInterrupt, HindsightError])
def test_learn_leaves_a_checkpoint_when_it_is_interrupted(tmp_path, problem):
    def interrupt(view):
        if view.num_timesteps == 30:
            raise problem("now")

    with her() as model:
        with pytest.raises(problem):
            model.learn(100, callback=interrupt, folder=tmp_path / "run")
        assert json.loads((tmp_path / "run" / "ended.json").read_text()) == {"why": "stopped", "env_steps": 30}
        state = trainer_state(model.trainer)[0]
        model.close()
        with folder_of(model, tmp_path / "run") as folder, HER(short, recipe="point_reach", eval_every=0, **SMALL) as other:
            folder.resume(other.trainer)
            assert same_bytes(trainer_state(other.trainer)[0], state)


def test_learn_saves_no_checkpoint_of_an_update_that_was_interrupted(tmp_path, monkeypatch):
    def updates(batch):
        if model.trainer.counts.env_steps == 50:
            made(batch)
            raise MemoryError("now")
        return made(batch)

    with her(checkpoint_every=30) as model:
        made = model.agent.updates
        monkeypatch.setattr(model.agent, "updates", updates)
        with pytest.raises(MemoryError) as caught:
            model.learn(100, folder=tmp_path / "run")
        assert "checkpoint.safetensors, after 30 steps" in caught.value.__notes__[0]
        assert not (tmp_path / "run" / "ended.json").exists()
        model.close()
        with her(checkpoint_every=30) as other, folder_of(other, tmp_path / "run") as folder, her() as whole:
            folder.resume(other.trainer)
            assert other.trainer.counts.env_steps == 30
            assert same_bytes(other.learn(30).agent.state_dict(), whole.learn(60).agent.state_dict())

import numpy as np
import pytest
from run_files import write_run

from hindsight.errors import FileError, RunFolderError
from hindsight.report.run import read_run


def test_a_run_is_read_as_columns(tmp_path):
    run = read_run(write_run(tmp_path / "a", seed=3))
    assert (run.environment, run.agent, run.seed, run.name, len(run)) == ("Task-v0", "td3", 3, "a", 4)
    assert run.column("test/success_rate").tolist() == [0.0, 0.5, 1.0, 1.0]
    assert np.isnan(run.column("nothing")).all()
    assert run.last("env_steps") == 400
    assert run.evaluated.asked.shape == (40, 3)
    assert run.evaluated.success.sum() == 25
    assert run.trained.reached[0].tolist() == [0.2, -0.2, 0.5]
    assert np.isnan(run.evaluated.reached).all()


def test_a_record_that_lacks_a_name_has_no_number_there(tmp_path):
    path = write_run(tmp_path / "a")
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 500, "train/new": 2.0}\n')
    run = read_run(path)
    assert run.column("train/new")[-1] == 2.0
    assert np.isnan(run.column("train/new")[:-1]).all()
    assert run.last("test/success_rate") == 1.0


def test_a_line_that_is_being_written_is_left_out(tmp_path):
    path = write_run(tmp_path / "a")
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 5')
    assert len(read_run(path)) == 4


def test_damage_is_named(tmp_path):
    path = write_run(tmp_path / "a")
    lines = (path / "metrics.jsonl").read_text().splitlines()
    (path / "metrics.jsonl").write_text("\n".join([lines[0], "{", *lines[1:]]))
    with pytest.raises(FileError, match=r"line 2 of .*metrics.jsonl"):
        read_run(path)
    (path / "metrics.jsonl").write_text('["env_steps"]\n')
    with pytest.raises(FileError, match="malformed"):
        read_run(path)
    (path / "settings.json").write_text("[]")
    with pytest.raises(FileError, match="settings"):
        read_run(path)
    with pytest.raises(RunFolderError, match="holds no run"):
        read_run(tmp_path)

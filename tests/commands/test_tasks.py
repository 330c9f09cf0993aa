import sys

import pytest

from hindsight_rl.cli import main
from hindsight_rl.commands.tasks import new_task
from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.errors import OptionError, RunFolderError


def test_the_new_task_passes_the_check_and_its_own_tests(tmp_path, monkeypatch, capsys):
    assert main(["new", "park_it", "--folder", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "hindsight-rl train park_it:ParkIt-v0" in output
    monkeypatch.syspath_prepend(tmp_path)
    report = check_goal_env("park_it:ParkIt-v0")
    assert report.ok, str(report)
    import test_park_it

    for name, test in vars(test_park_it).items():
        if name.startswith("test_"):
            test()
    for module in ("park_it", "test_park_it"):
        del sys.modules[module]


@pytest.mark.parametrize("name", ["MyTask", "my-task", "1task", "my__task", "../task", ""])
def test_other_names_are_refused(name, tmp_path):
    with pytest.raises(OptionError, match="small letters"):
        new_task(name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["class", "json", "numpy", "this"])
def test_a_name_that_would_hide_a_module_is_refused(name, tmp_path):
    with pytest.raises(OptionError, match="Choose another name"):
        new_task(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_files_are_not_overwritten(tmp_path):
    new_task("park_it", tmp_path)
    with pytest.raises(RunFolderError, match="already exists"):
        new_task("park_it", tmp_path)

import pytest

from hindsight_rl import PointReach


@pytest.fixture
def env(monkeypatch, tmp_path):
    """A task of episodes of 3 steps, and an empty folder of data sets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return PointReach(max_steps=3)

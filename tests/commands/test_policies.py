import gymnasium

from hindsight_rl import PointReach
from hindsight_rl.commands.policies import _render_mode


class Undrawn(PointReach):
    render = gymnasium.Env.render


def test_an_environment_whose_render_is_not_written_is_played_without_pictures(monkeypatch, capsys):
    monkeypatch.setitem(gymnasium.registry, "Undrawn-v0", gymnasium.envs.registration.EnvSpec("Undrawn-v0", Undrawn))
    assert _render_mode("Undrawn-v0", {}, in_window=False) is None
    assert "its render() is not written. It is played without pictures." in capsys.readouterr().out

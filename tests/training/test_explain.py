from short_runs import her

from hindsight_rl.training.explain import explain


def test_every_option_has_its_meaning_and_where_its_value_comes_from():
    with her(tau=0.5) as model:
        explained = explain(model.settings)
        assert set(explained) == set(model.settings.flat())
    assert all(facts["meaning"] for facts in explained.values())
    assert {facts["part"] for facts in explained.values()} == {"agent", "hindsight", "collecting", "training"}
    assert (explained["tau"]["part"], explained["tau"]["default"]) == ("agent", 0.005)
    assert "recipe" in explained["symmetries"]
    assert "recipe" not in explained["seed"]
    assert [explained[name]["source"] for name in ("tau", "symmetries", "capacity")] == ["given", "recipe", "default"]

"""The last line of a notebook's cell is shown by its repr: of every result and record it is short, and says what it is."""

import pytest

from hindsight_rl import HER, check_goal_env, read_spec
from hindsight_rl.callbacks import View
from hindsight_rl.options import ReplayOptions

SHORT = 300  # characters


@pytest.fixture(scope="module")
def model():
    with HER("PointReach-v0", hidden=(8,), batch_size=16, random_steps=50, eval_every=0, updates_per_step=0.1) as model:
        model.learn(150)
        yield model


RESULTS = {
    "evaluation": lambda model: model.evaluate(50),
    "outcome": lambda model: model.evaluate(1).outcomes[0],
    "model": lambda model: model,
    "settings": lambda model: model.settings,
    "agent options": lambda model: model.settings.agent_options,
    "replay options": lambda model: model.settings.replay,
    "default options": lambda model: ReplayOptions(),
    "task": lambda model: model.spec,
    "task of an environment": lambda model: read_spec(model._assembly.environment),
    "policy": lambda model: model.policy,
    "weights": lambda model: model.weights,
    "saved model": lambda model: model.saved_model(),
    "check": lambda model: model.check_report,
    "check of an environment": lambda model: check_goal_env("BitFlipping-v0"),
    "buffer": lambda model: model.trainer.buffer,
    "timeline": lambda model: model.trainer.buffer.timeline,
    "batch": lambda model: model.trainer.buffer.sample(64),
    "batches": lambda model: model.trainer.buffer.sample_many(2, 64),
    "episode": lambda model: model.trainer.buffer.timeline.episodes()[0],
    "view": lambda model: View.take(model, model.trainer.buffer.timeline.episodes()),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_a_short_repr(model, name):
    assert len(repr(RESULTS[name](model))) < SHORT


def test_an_evaluation_as_the_last_line_of_a_cell_is_its_summary(model):
    evaluation = model.evaluate(3)
    assert repr(evaluation) == f"Evaluation({evaluation})"
    assert repr(evaluation.outcomes[0]).startswith("Outcome(episode 0: failure, return -50.00, final distance 0.")


def test_options_show_what_differs_from_their_default():
    assert repr(ReplayOptions(prioritized=True, alpha=0.5)) == "ReplayOptions(prioritized=True, alpha=0.5)"
    assert repr(ReplayOptions()) == "ReplayOptions()"

"""Which columns are hidden, and for which reason."""

from dataclasses import replace

import numpy as np
import pytest
from pusher import COLUMNS, SPEC, Pusher, options_of, structure_of

from hindsight_rl.records import Episode
from hindsight_rl.structure import explain_findings, explain_missing, infer_structure
from hindsight_rl.structure.model import Difference
from hindsight_rl.structure.relevance import ColumnTest
from hindsight_rl.structure.steps import Steps


class Steered(Pusher):
    """An action is a target position of the tool."""

    def step(self, action):
        super().step(4 * (0.8 * action - self.tool))


def test_noise_constants_and_positions_are_hidden_and_the_gap_is_not(inferred):
    structure = inferred[0]
    assert structure.constant == COLUMNS["constant"]
    hidden = set(options_of(structure)["hidden_observation"])
    assert hidden >= {*COLUMNS["noise"], *COLUMNS["constant"], *COLUMNS["tool"], *COLUMNS["object"]}
    assert not hidden & set(COLUMNS["gap"])


def test_no_column_is_hidden_where_episodes_fail(inferred):
    _, episodes, probing = inferred
    seen = (each[:31] for each in (probing[0].observation, probing[0].achieved_goal, probing[0].desired_goal))
    lost = Episode(*seen, probing[0].action[:30], np.full(30, -1.0), terminated=True)
    spec = replace(SPEC, reward_low=-1.0, reward_high=0.0)
    found = infer_structure(episodes, spec, [lost, *probing[1:]])
    assert found.hidden_columns == COLUMNS["constant"]
    assert "no hidden columns that change: 1 episodes failed" in explain_missing(found)[0]


def test_positions_stay_visible_where_actions_are_target_positions():
    """Mirrors hold, but the action that moves the tool by so much depends on where the tool is."""
    structure, episodes, probing = structure_of(world=Steered(0))
    assert [symmetry.holds for symmetry in structure.symmetries] == [True] * 3
    assert structure.hidden.positions == (*COLUMNS["tool"], *COLUMNS["object"])
    assert not set(structure.hidden.positions) & set(structure.hidden_columns)
    assert any("positions 0, 1, 2, 3 are shown" in str(found) for found in explain_findings(structure))
    hidden = (*structure.hidden.positions, *structure.hidden_columns)
    assert infer_structure(episodes, SPEC, probing, hidden=hidden).hidden.needed == ()  # may_show is False
    later = infer_structure(episodes, SPEC, probing, hidden=hidden, may_show=True)
    assert [each.columns for each in later.hidden.needed] == [structure.hidden.positions]
    assert later.hidden_columns == structure.hidden_columns
    assert any("columns 0, 1, 2, 3 are shown again" in str(found) for found in explain_findings(later))
    (why,) = [choice.reason for choice in later.choices() if choice.option == "hidden_observation"]
    assert why.startswith("columns 0, 1, 2, 3 matter: the held-out error changes by +")


@pytest.mark.parametrize(
    ("without", "is_uncertain"),
    [
        (None, True),  # the networks know nothing yet
        (Difference(0.3, 0.1), True),
        (Difference(0.0, 0.1), False),  # positions do not matter
        (Difference(0.9, 0.1), False),  # they do
    ],
)
def test_whether_positions_matter_is_open_until_the_test_is_certain(inferred, without, is_uncertain):
    hidden = replace(inferred[0].hidden, without_positions=without)
    assert replace(inferred[0], symmetries=(), hidden=hidden).is_uncertain == is_uncertain
    hidden = replace(hidden, positions=(), without_positions=None)
    assert not replace(inferred[0], symmetries=(), hidden=hidden).is_uncertain


def test_networks_that_see_nothing_but_noise_know_nothing(inferred):
    _, episodes, probing = inferred
    structure, steps = inferred[0], Steps.from_episodes([*episodes, *probing])
    seen = np.random.default_rng(0).normal(size=steps.observation.shape)
    noise = replace(steps, observation=seen, next_observation=seen + steps.change, action=0 * steps.action)
    columns = [*COLUMNS["tool"], *COLUMNS["object"], *COLUMNS["velocity"]]
    assert ColumnTest(steps, structure.contact, columns).knows_something
    assert not ColumnTest(noise, structure.contact, columns).knows_something

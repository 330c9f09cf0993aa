from dataclasses import replace

import numpy as np

from hindsight_rl.structure.columns import Units
from hindsight_rl.structure.contact import Contact, measure_contact
from hindsight_rl.structure.steps import Steps


def test_the_evidence_says_what_was_compared():
    """A mean over onsets: single ones may be farther away."""
    evidence = Contact((0, 1), (2, 3), 5, (0.1, 0.2, 0.9), 1.0, 0.0).evidence(Units.same(4))
    assert evidence.startswith(
        "columns 0, 1 were near columns 2, 3 on average where the goal moved from rest, in 5 episodes ("
    )


def test_contact_at_no_distance_has_the_tolerance_of_a_usual_step():
    tool = np.tile([0.0, 1.0, 2.0, 3.0], 3)[:, None]  # a cursor that takes the object at 2 along, to 4
    puck = np.tile([2.0, 2.0, 2.0, 3.0], 3)[:, None]
    seen, then = np.column_stack([tool, puck]), np.column_stack([tool + 1, np.tile([2.0, 2.0, 3.0, 4.0], 3)])
    then[:, 0] = then[:, 1]
    goal, episode = np.repeat([3.0, 4.0, 5.0], 4)[:, None], np.repeat([0, 1, 2], 4)
    steps = Steps(seen, np.ones((12, 1)), then, puck, then[:, 1:], goal, episode)
    contact = measure_contact(steps, (0,), (1,))
    assert contact.distances == (1, 1, 1)
    assert contact.moves_on == 0
    assert contact.subgoal(Units.same(2)).tolerance == 0.75


def test_an_object_that_flies_on_beyond_the_reach_of_the_tool_must_be_hit():
    """By hand: the tool goes from 0 to 1 and stays. The puck at 1 is hit, and moves by 1 in nine steps."""
    tool, puck = np.array([0.0, 0, *[1.0] * 9]), np.array([1.0, 1, *range(2, 11)])
    columns = np.column_stack([tool, puck])
    seen, then = (np.tile(each, (2, 1)) for each in (columns[:-1], columns[1:]))
    episode, goal = np.repeat([0, 1], 10), np.repeat([20.0, 21.0], 10)[:, None]
    before, after = seen[:, 1:], then[:, 1:]
    steps = Steps(seen, np.ones((20, 1)), then, before, after, goal, episode)
    contact = measure_contact(steps, (0,), (1,))
    assert contact.distances[1] == 1
    assert (contact.in_reach, contact.moves_on) == (0, 5 / 9)  # from 4 on it is farther away than three times the distance
    assert not contact.leads_to_goals
    assert replace(contact, moves_on=0.1).leads_to_goals

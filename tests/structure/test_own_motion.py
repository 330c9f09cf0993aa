"""Objects that move by themselves: what touches them shows beside their own motion."""

from dataclasses import replace

import numpy as np
from pusher import SPEC, Pusher, play, repeated_random_actions

from hindsight_rl.structure import explain_findings, infer_structure
from hindsight_rl.structure.columns import find_goal_copies
from hindsight_rl.structure.controlled import find_controlled_columns
from hindsight_rl.structure.own_motion import find_own_motion
from hindsight_rl.structure.parts import find_parts
from hindsight_rl.structure.steps import Steps


class Drifting(Pusher):
    """The puck drifts, in each episode with another velocity."""

    def reset(self):
        super().reset()
        self.drift = self.rng.uniform(-0.01, 0.01, 2)

    def step(self, action):
        self.puck = self.puck + self.drift
        super().step(action)


def drifting(n_episodes=40):
    return play(Drifting(0), n_episodes, repeated_random_actions(0))


def motion_of(steps):
    return find_own_motion(steps, find_parts(steps), find_goal_copies(steps), find_controlled_columns(steps))


def test_a_puck_that_drifts_is_an_object_and_its_tool_is_found():
    found = infer_structure(drifting(), SPEC)
    (part,) = found.parts.parts
    assert (part.kind, part.dimensions, part.moves_by_itself) == ("object", (0, 1), True)
    assert found.sequence is not None
    assert found.sequence.contacts[0].tool == (0, 1)
    assert "it moves by itself in 9" in explain_findings(found)[0].reason


def test_it_is_a_body_if_that_is_asked_for():
    found = infer_structure(drifting(), SPEC, moves_by_itself=False)
    assert [part.kind for part in found.parts.parts] == ["body"]


def test_what_is_left_of_displacements_is_the_effect_of_touch():
    steps = Steps.from_episodes(drifting())
    own = motion_of(steps)
    distance = np.linalg.norm(steps.next_observation[:, 4:6], axis=1)  # 0.15 is the radius, beside which the tool stays
    is_touched = distance < 0.15 + 1e-9
    moves = own.subtract(steps).moved > 0
    inside = ~steps.starts_episode
    assert moves[inside & is_touched].mean() > 0.5
    # a step after the touch, the displacement before it has the effect of the touch, and does not go on
    assert moves[inside & ~is_touched & ~np.roll(is_touched, 1)].mean() == 0


def test_the_first_step_of_an_episode_shows_no_touch():
    steps = Steps.from_episodes(drifting())
    assert not motion_of(steps).subtract(steps).displacement[steps.starts_episode].any()


def test_noise_that_was_measured_stays():
    steps = Steps.from_episodes(drifting())
    own = motion_of(steps)
    assert own.subtract(replace(steps, noise=np.array([1.0, 0.0]))).noise.tolist() == [1.0, own.deviation[1]]


def test_what_actions_move_does_not_move_by_itself():
    steps = Steps.from_episodes(play(Pusher(0), 40, repeated_random_actions(0)))
    body = replace(steps, achieved_goal=steps.observation[:, :2], next_achieved_goal=steps.next_observation[:, :2])
    assert [part.kind for part in find_parts(body).parts] == ["body"]
    assert motion_of(body) is None


def test_an_object_at_rest_has_no_motion_of_its_own():
    assert motion_of(Steps.from_episodes(play(Pusher(0), 40, repeated_random_actions(0)))) is None

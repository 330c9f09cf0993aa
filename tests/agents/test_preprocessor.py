from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_agents import random_batch

from hindsight_rl.agents.losses import value_range
from hindsight_rl.agents.networks import choose_device
from hindsight_rl.agents.policy import Policy, PolicySpec, PolicyWeights
from hindsight_rl.agents.preprocessor import Preprocessor
from hindsight_rl.errors import OptionError, ShapeError
from hindsight_rl.options import AgentOptions
from hindsight_rl.options.agent import DDPGOptions, DQNOptions
from hindsight_rl.records import BATCH_FIELDS, ArraySpec, Batch, Episode, GoalSpec

CPU = torch.device("cpu")
CHOICE = ArraySpec((), "int64", (3.0,), (6.0,), 4)


def make_spec(action=None, observation=(2,), dtype="float64"):
    action = action or ArraySpec((1,), "float32", (-2.0,), (4.0,))
    return GoalSpec(ArraySpec(observation, dtype), ArraySpec((1,), dtype), action, 50, -1.0, 0.0)


def make_preprocessor(options, spec=None):
    return Preprocessor(PolicySpec(spec or make_spec(), options), CPU)


def one_batch(**changes):
    values = {
        "observation": np.array([[[1.0, 2.0], [3.0, 90.0]]]),
        "achieved_goal": np.array([[[5.0], [6.0]]]),
        "goal": np.array([[[0.5], [-0.5]]]),
        "action": np.array([[[-2.0], [4.0]]]),
        "reward": np.array([[-1.0, 0.0]]),
        "next_observation": np.array([[[2.0, 1.0], [0.0, 0.0]]]),
        "next_achieved_goal": np.array([[[7.0], [8.0]]]),
        "terminated": np.array([[False, True]]),
        "is_relabelled": np.array([[False, True]]),
        "row": np.array([[0, 1]]),
    }
    return Batch(**{**values, **changes})


def test_a_batch_becomes_rows_of_numbers():
    transitions = make_preprocessor(AgentOptions(normalize=False, discount=0.9)).transitions(one_batch(), 1)
    # observation, goal, action in [-1, 1]
    assert transitions.critic_inputs.tolist() == [[[1, 2, 0.5, -1], [3, 90, -0.5, 1]]]
    assert transitions.inputs.tolist() == [[[1, 2, 0.5], [3, 90, -0.5]]]
    assert transitions.action.tolist() == [[[-1], [1]]]
    assert transitions.next_inputs.tolist() == [[[2, 1, 0.5], [0, 0, -0.5]]]
    assert transitions.reward.tolist() == [[[-1], [0]]]
    torch.testing.assert_close(transitions.discount, torch.tensor([[[0.9], [0.0]]]))
    assert {t.dtype for t in (transitions.inputs, transitions.reward, transitions.discount)} == {torch.float32}
    assert transitions.weight is None


def test_actions_are_in_units_of_the_range_in_use():
    transitions = make_preprocessor(DDPGOptions(normalize=False, action_scale=0.5)).transitions(one_batch(), 1)
    assert transitions.action.tolist() == [[[-2], [2]]]  # from -2 to 4, of which -0.5 to 2.5 is in use


def test_discrete_actions_are_indices_and_no_input():
    inputs = make_preprocessor(DQNOptions(normalize=False), make_spec(CHOICE))
    transitions = inputs.transitions(one_batch(action=np.array([[3, 6]])), 1)
    assert transitions.action.tolist() == [[[0], [3]]]
    assert transitions.action.dtype == torch.int64
    assert transitions.critic_inputs.tolist() == transitions.inputs.tolist() == [[[1, 2, 0.5], [3, 90, -0.5]]]


def test_weights_and_discounts_of_the_batch_are_used():
    batch = one_batch(weight=np.array([[0.5, 2.0]]), discount=np.array([[0.8, 0.0]], np.float32))
    transitions = make_preprocessor(AgentOptions()).transitions(batch, 1)
    assert transitions.weight.tolist() == [[[0.5], [2]]]
    torch.testing.assert_close(transitions.discount, torch.tensor([[[0.8], [0.0]]]))
    assert transitions[0].weight.tolist() == [[0.5], [2]]
    assert transitions[0].inputs.shape == (2, 3)


def test_the_achieved_goal_comes_after_the_goal():
    options = AgentOptions(normalize=False, observe_achieved_goal=True)
    transitions = make_preprocessor(options).transitions(one_batch(), 1)
    assert transitions.inputs[0].tolist() == [[1, 2, 0.5, 5], [3, 90, -0.5, 6]]
    assert transitions.next_inputs[0].tolist() == [[2, 1, 0.5, 7], [0, 0, -0.5, 8]]


def test_inputs_are_normalized_and_clipped():
    inputs = make_preprocessor(AgentOptions(normalizer_clip=5.0))
    observation, goal = np.array([[0.0, 1.0], [4.0, 3.0]]), np.array([[-1.0], [1.0]])
    inputs.observe(Episode(observation, goal, goal, np.zeros((1, 1)), np.zeros(1)))  # means 2, 2, 0; deviations 2, 1, 1
    transitions = inputs.transitions(one_batch(), 1)
    expected = [[-0.5, 0, 0.5, -1], [0.5, 5, -0.5, 1]]
    torch.testing.assert_close(transitions.critic_inputs[0], torch.tensor(expected))
    torch.testing.assert_close(transitions.next_inputs[0], torch.tensor([[0, -1, 0.5], [-1, -2, -0.5]]))


def test_the_arrays_of_a_batch_are_not_changed():
    batch = random_batch(np.random.default_rng(0), 8, 2, (2, 1, 1))
    batch = replace(batch, terminated=batch.terminated.astype(np.float32))
    copies = {name: getattr(batch, name).copy() for name in BATCH_FIELDS}
    inputs = make_preprocessor(AgentOptions())
    inputs.transitions(batch, 2)
    for name, copy in copies.items():
        np.testing.assert_array_equal(getattr(batch, name), copy)


def test_integers_images_and_read_only_arrays_are_accepted():
    observation = np.full((1, 2, 2, 2), 255, np.uint8)
    observation.flags.writeable = False
    spec = make_spec(observation=(2, 2), dtype="uint8")
    batch = one_batch(observation=observation, next_observation=observation, goal=np.ones((1, 2, 1), np.int64))
    transitions = make_preprocessor(AgentOptions(normalize=False), spec).transitions(batch, 1)
    assert transitions.inputs[0, 0].tolist() == [255] * 4 + [1]


def test_one_batch_needs_no_leading_axis_and_wrong_counts_are_refused():
    inputs = make_preprocessor(AgentOptions())
    without_axis, with_axis = inputs.transitions(one_batch()[0], 1), inputs.transitions(one_batch(), 1)
    assert torch.equal(without_axis.critic_inputs, with_axis.critic_inputs)
    with pytest.raises(ShapeError, match=r"\(2, B\) for `reward`, got \(1, 2\).*sample_many\(2"):
        inputs.transitions(one_batch(), 2)
    with pytest.raises(ShapeError, match=r"got \(2,\)"):
        inputs.transitions(one_batch()[0], 2)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_refused():
    assert choose_device("auto") == choose_device("cpu") == CPU
    with pytest.raises(OptionError, match="no GPU"):
        choose_device("cuda")


NEAR = "near achieved=0 goal=1 tolerance=0.5 switch_distance=2"


def test_the_next_action_is_for_the_acting_subgoal():
    options = DDPGOptions(normalize=False, subgoals=(NEAR,))
    inputs = make_preprocessor(options)
    batch = one_batch(next_observation=np.array([[[2.0, 1.0], [0.0, 9.0]]]), subgoal=np.array([[0, 0]]))
    observed = inputs.transitions(batch, 1)
    assert observed.inputs[0].tolist() == [[1, 2, 0.5, 0], [3, 90, -0.5, 0]]
    assert observed.next_inputs[0].tolist() == [[2, 1, 0.5, 0], [0, 9, -0.5, 0]]
    assert observed.next_policy_inputs[0].tolist() == [[2, 1, 0.5, 0], [0, 9, 9, 1]]  # the second is far from its subgoal
    assert observed[0].next_policy_inputs.shape == (2, 4)
    of_subgoal = inputs.transitions(replace(batch, subgoal=np.array([[1, 1]])), 1)
    assert of_subgoal.inputs[0].tolist() == [[1, 2, 0.5, 1], [3, 90, -0.5, 1]]
    assert torch.equal(of_subgoal.next_policy_inputs, of_subgoal.next_inputs)
    assert torch.equal(inputs.transitions(replace(batch, subgoal=None), 1).next_policy_inputs, observed.next_policy_inputs)


def test_without_subgoals_policy_and_critic_have_the_same_next_inputs():
    transitions = make_preprocessor(AgentOptions()).transitions(one_batch(), 1)
    assert transitions.next_policy_inputs is transitions.next_inputs


def test_the_goals_of_subgoals_are_in_the_goal_statistics():
    inputs = make_preprocessor(DDPGOptions(subgoals=(NEAR,), goal_features="relative"))
    goal = np.zeros((2, 1))
    inputs.observe(Episode(np.array([[3.0, -3.0], [3.0, -3.0]]), goal, goal, np.zeros((1, 1)), np.zeros(1)))
    assert inputs.normalizer.moments["goal"].standard_deviation() == pytest.approx([4.5**0.5])  # 0 0, 0 0, 3 3, -3 -3


@pytest.mark.parametrize(
    ("reward_range", "clip_targets", "expected"),
    [
        ((-1.0, 0.0), True, (-50.0, 0.0)),
        ((-1.0, 0.0), False, (-np.inf, np.inf)),
        ((-1e37, 1e37), True, (-np.inf, np.inf)),  # times 50: no float32
    ],
)
def test_value_range(reward_range, clip_targets, expected):
    spec = replace(make_spec(), reward_low=reward_range[0], reward_high=reward_range[1])
    assert value_range(spec, AgentOptions(discount=0.98, clip_targets=clip_targets)) == pytest.approx(expected)


HANDLE = "reach achieved=0,1 goal=0*o0+4,o1+1 tolerance=0.5 switch_distance=2 dimensions=0 placed=0.25"


def test_a_place_that_is_no_position_in_the_goal_is_seen_after_it():
    inputs = make_preprocessor(DDPGOptions(normalize=False, subgoals=(HANDLE,), goal_features="relative"))
    batch = one_batch(subgoal=np.array([[1, 0]]), place=np.array([[[4.0, 3.0], [0.0, 0.0]]]))
    found = inputs.transitions(batch, 1)
    # observation, goal and place, what is left of both, and whether the place is sought
    assert found.inputs[0].tolist() == [[1, 2, 0.5, 4, 3, -4.5, 3, 1, 1], [3, 90, -0.5, 0, 0, -6.5, 0, 0, 0]]
    # the row of the task: at (0, 0) the tool is far from the handle at (4, 1); all else counts as reached
    assert found.next_policy_inputs[0].tolist()[1] == [0, 0, -0.5, 4, 1, 0, 4, 1, 1]


def test_acting_and_learning_see_the_same_place():
    options = DDPGOptions(normalize=False, subgoals=(HANDLE,), goal_features="relative")
    inputs, policy = make_preprocessor(options), Policy(PolicySpec(make_spec(), options))
    observed = np.array([0.0, 0.0]), np.array([8.0]), np.array([-0.5])
    weights = PolicyWeights(
        np.zeros(policy.spec.architecture.n_weights, np.float32), np.zeros(9, np.float32), np.ones(9, np.float32)
    )
    policy.load(weights)
    batch = one_batch(subgoal=np.array([[0, 0]]))
    learned = inputs.transitions(batch, 1).next_policy_inputs[0, 1].tolist()
    assert policy.inputs((), observed).tolist() == learned
    assert policy.inputs((1,), [part[None] for part in observed])[0].tolist() == learned

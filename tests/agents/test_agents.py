"""What every agent must do, whatever its algorithm."""

import numpy as np
import pytest
import torch
from plain_agents import PLAIN_AGENTS, random_batch

from hindsight.agents import AGENT_NAMES, make_agent
from hindsight.agents.options import AGENT_OPTIONS, DDPGOptions
from hindsight.agents.policy import Policy, PolicySpec
from hindsight.errors import FileError, OptionError, UnknownNameError
from hindsight.records import ArraySpec, Batch, Episode, GoalSpec

SIZES = (6, 2, 3)


def make_spec(sizes=SIZES, low=-1.0, high=1.0, reward_range=(-1.0, 0.0)):
    observation, goal, action = sizes
    parts = ArraySpec((observation,), "float64"), ArraySpec((goal,), "float64")
    return GoalSpec(*parts, ArraySpec((action,), "float32", (low,), (high,)), 50, *reward_range)


def make(name, seed=0, spec=None, **options):
    return make_agent(name, spec or make_spec(), AGENT_OPTIONS[name](**{"hidden": (16, 16), **options}), seed)


def make_batch(agent, seed=0, rows=32):
    return random_batch(np.random.default_rng(seed), rows, agent.batches_per_update, SIZES)


def make_episode(seed, steps=5):
    rng = np.random.default_rng(seed)
    goal = rng.normal(size=(steps + 1, SIZES[1]))
    return Episode(rng.normal(2.0, 3.0, (steps + 1, SIZES[0])), goal, goal, np.zeros((steps, SIZES[2])), np.zeros(steps))


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name


@pytest.mark.parametrize("name", AGENT_NAMES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"critic_layer_norm": True, "actor_layer_norm": True},
        {"n_critics": 3, "hidden": (8,)},
        {"clip_targets": False, "action_l2": 1.0, "tau": 0.5},
    ],
)
def test_updates_equal_those_of_a_plain_version(name, options):
    agent = make(name, normalize=False, **options)
    plain = PLAIN_AGENTS[name](agent)
    for step in range(5):
        batch = make_batch(agent, seed=step)
        metrics = agent.update(batch)
        expected = plain.update(batch if name == "td3" else batch[0])
        for metric, value in expected.items():
            torch.testing.assert_close(metrics[metric], value, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(agent.weights, plain.flat(), rtol=1e-3, atol=2e-5)
    targets = plain.flat_targets()[-len(agent.targets) :]  # SAC has no target actor
    torch.testing.assert_close(agent.targets, targets, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_acting_in_numpy_equals_the_actor(name):
    agent = make(name, sees_achieved_goal=True, actor_layer_norm=True)
    for seed in range(3):
        agent.observe(make_episode(seed))
    agent.update(make_batch(agent))
    policy = Policy(PolicySpec.from_json(agent.policy_spec.to_json()))
    policy.load(agent.policy_weights())
    batch = make_batch(agent, seed=1)
    inputs = agent.inputs.transitions(batch, agent.batches_per_update).inputs[0]
    expected = agent.actor(inputs)[0, :, : SIZES[2]].tanh().numpy()
    actions = policy.predict(batch.observation[0], batch.achieved_goal[0], batch.goal[0])
    np.testing.assert_allclose(actions, expected, atol=1e-5)
    one = policy.act(batch.observation[0, 0], batch.achieved_goal[0, 0], batch.goal[0, 0])
    np.testing.assert_allclose(one, expected[0], atol=1e-5)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_published_weights_are_copies(name):
    agent = make(name)
    weights = agent.policy_weights()
    before = weights.flat.copy()
    agent.update(make_batch(agent))
    np.testing.assert_array_equal(weights.flat, before)
    assert not np.array_equal(agent.policy_weights().flat, before)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(name):
    states = []
    for seed in (3, 3, 4):
        agent = make(name, seed=seed, n_critics=3, n_target_critics=2)
        torch.manual_seed(seed * len(states))  # the global generator has no say
        for step in range(3):
            agent.observe(make_episode(step))
            agent.update(make_batch(agent, seed=step))
        states.append(agent.state_dict())
    assert_same(states[0], states[1])
    assert states[0]["weights"].tobytes() != states[2]["weights"].tobytes()


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_restored_agent_goes_on_to_the_same_bytes(name):
    options = {"n_critics": 3, "n_target_critics": 2, "target_period": 2, "gradient_clip": 0.5}
    first, second = make(name, **options), make(name, seed=9, **options)
    for step in range(3):
        first.observe(make_episode(step))
        first.update(make_batch(first, seed=step))
    second.load_state_dict(first.state_dict())
    assert_same(first.state_dict(), second.state_dict())
    for step in range(3, 6):
        for agent in (first, second):
            agent.observe(make_episode(step))
            agent.update(make_batch(agent, seed=step))
    assert_same(first.state_dict(), second.state_dict())
    assert first.n_updates == second.n_updates == 6 * first.batches_per_update
    np.testing.assert_array_equal(first.policy_weights().input_mean, second.policy_weights().input_mean)


def without(state, name):
    return {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_state_that_does_not_fit_changes_nothing(name):
    agent = make(name)
    state, other = agent.state_dict(), make(name, hidden=(8, 8)).state_dict()
    foreign = make("td3" if name == "sac" else "sac").state_dict()
    damaged = {**state, "generator": np.zeros_like(state["generator"])}
    cases = [
        (without(state, "targets"), "targets"),
        ({**state, "extra": np.zeros(1)}, "extra"),
        (other, "weights"),
        ({**state, "weights": state["weights"].astype(np.float64)}, "float64"),
        (foreign, "entropy" if name == "sac" else "log_coefficient"),
        (damaged, "generator"),
    ]
    for bad, word in cases:
        with pytest.raises(FileError, match=word):
            agent.load_state_dict(bad)
        assert_same(agent.state_dict(), state)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_an_end_stops_the_bootstrap(name):
    """With every transition terminated, what comes after has no influence on the critics."""
    agents = make(name), make(name)
    batch = make_batch(agents[0])
    values = {field: getattr(batch, field) for field in Batch.__slots__} | {"terminated": np.ones_like(batch.terminated)}
    for agent, scale in zip(agents, (1.0, 3.0), strict=True):
        agent.update(Batch(**{**values, "next_observation": batch.next_observation * scale}))
    assert torch.equal(agents[0].critics.flat, agents[1].critics.flat)
    values["terminated"] = np.zeros_like(batch.terminated)
    for agent, scale in zip(agents, (1.0, 3.0), strict=True):
        agent.update(Batch(**{**values, "next_observation": batch.next_observation * scale}))
    assert not torch.equal(agents[0].critics.flat, agents[1].critics.flat)


@pytest.mark.parametrize("name", ["ddpg", "td3"])
def test_targets_are_clipped_to_what_rewards_can_produce(name):

    def targets(next_value, **options):
        agent = make(name, discount=0.9, **options)
        agent.target_critics.layers[-1][1].fill_(next_value)  # every next value is about this
        batch = make_batch(agent)
        batch.terminated[:, 0], batch.reward[:, 0] = True, -1.0
        transitions = agent.inputs.transitions(batch, agent.batches_per_update)
        return agent._targets(transitions) if name == "td3" else agent._target(transitions)

    assert (targets(1000.0).min(), targets(1000.0).max()) == (-1, 0)  # an ended row keeps its reward
    assert targets(-1000.0).min() == pytest.approx(-10)
    assert targets(1000.0, clip_targets=False).max() > 800


def test_sac_clips_the_value_but_not_the_entropy():
    agent = make("sac", discount=0.9, entropy_coefficient=2.0)
    agent.target_critics.layers[-1][1].fill_(1000.0)
    transitions = agent.inputs.transitions(make_batch(agent), 1)
    target = agent._target(transitions, torch.tensor(2.0))
    assert 0 < target.max() < 20  # the value is held at 0, what remains is the entropy bonus


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_targets_move_at_their_period(name):
    agent = make(name, tau=1.0, target_period=2)
    batch, before = make_batch(agent), agent.targets.clone()
    agent.update(batch)
    assert torch.equal(agent.targets, before)
    agent.update(batch)
    assert torch.equal(agent.targets, agent.weights[-len(before) :])


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_actions_are_learnt_in_units_of_their_bounds(name):
    """Bounds of 0 and 10 with actions to match make the same update as -1 and 1."""
    plain, scaled = make(name), make(name, spec=make_spec(low=0.0, high=10.0))
    batch = make_batch(plain)
    values = {field: getattr(batch, field) for field in Batch.__slots__}
    plain.update(batch)
    scaled.update(Batch(**{**values, "action": (batch.action + 1) * 5}))
    torch.testing.assert_close(plain.weights, scaled.weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_metrics_are_tensors_and_reveal_what_is_not_finite(name):
    agent = make(name)
    metrics = agent.update(make_batch(agent))
    assert {"critic_loss", "actor_loss", "q_mean"} <= metrics.keys()
    assert all(isinstance(value, torch.Tensor) and value.shape == () for value in metrics.values())
    assert agent.is_finite()
    agent.critics.flat[0] = torch.nan
    assert not agent.is_finite()
    assert not torch.isfinite(agent.update(make_batch(agent))["critic_loss"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_gpu_is_used_where_asked(name):
    options = {"n_critics": 3, "n_target_critics": 2, "target_period": 2, "gradient_clip": 0.5, "device": "cuda"}
    first, second = make(name, **options), make(name, seed=9, **options)
    first.observe(make_episode(0))
    metrics = first.update(make_batch(first))
    assert all(value.device.type == "cuda" for value in metrics.values())
    second.load_state_dict(first.state_dict())
    assert_same(first.state_dict(), second.state_dict())
    assert first.policy_weights().flat.dtype == np.float32


def test_exploration_says_how_each_agent_explores():
    td3, sac = make("td3", noise=0.3, random_eps=0.1), make("sac")
    assert vars(td3.exploration(False)) == {"random_eps": 0.1, "noise": 0.3, "is_random": False, "samples": False}
    assert vars(sac.exploration(True)) == {"random_eps": 0.0, "noise": 0.0, "is_random": True, "samples": True}


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_one_step_task_is_learnt(name):
    """The reward is how near the action is to the goal, and the episode ends: the best policy is action = goal."""
    spec = make_spec((2, 2, 2), reward_range=(-8.0, 0.0))
    agent = make(name, spec=spec, hidden=(32, 32), learning_rate=3e-3, action_l2=0.0, normalize=False)
    rng = np.random.default_rng(0)
    for _ in range(1000 // agent.batches_per_update):
        batch = random_batch(rng, 64, agent.batches_per_update, (2, 2, 2))
        values = {field: getattr(batch, field) for field in Batch.__slots__} | {
            "terminated": np.ones_like(batch.terminated)
        }
        goal = rng.uniform(-0.8, 0.8, batch.goal.shape).astype(np.float32)
        reward = -np.square(batch.action - goal).sum(-1)
        agent.update(Batch(**{**values, "goal": goal, "reward": reward}))
    policy = Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    goals = rng.uniform(-0.8, 0.8, (200, 2))
    actions = policy.predict(rng.normal(size=(200, 2)), goals, goals)
    assert np.abs(actions - goals).mean() < 0.1


def test_agents_are_made_by_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'td3'"):
        make_agent("td33", make_spec(), DDPGOptions(), 0)
    with pytest.raises(OptionError, match="TD3Options, got DDPGOptions"):
        make_agent("td3", make_spec(), DDPGOptions(), 0)

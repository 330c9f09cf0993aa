"""What every agent does, whatever its algorithm."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from plain_agents import PLAIN_AGENTS, random_batch

from hindsight_rl.agents import AGENT_NAMES, make_agent
from hindsight_rl.agents.agent import Agent
from hindsight_rl.agents.networks import Network
from hindsight_rl.agents.policy import Policy
from hindsight_rl.errors import FileError, GoalEnvError, OptionError, ShapeError, UnknownNameError
from hindsight_rl.options import AGENT_OPTIONS, CONTINUOUS_AGENTS, DISCRETE_AGENTS
from hindsight_rl.options.agent import DDPGOptions
from hindsight_rl.records import ArraySpec, Episode, GoalSpec
from hindsight_rl.records.exploration import Exploration
from hindsight_rl.task_structure.tabular_model import NO_PATH

SIZES = (6, 2, 3)
N_ACTIONS = 4
FIRST_ACTION = 2  # the choices are 2, 3, 4 and 5


def make_spec(sizes=SIZES, low=-1.0, high=1.0, reward_range=(-1.0, 0.0), is_discrete=False):
    observation, goal, action_size = sizes
    action = ArraySpec((action_size,), "float32", (low,), (high,))
    if is_discrete:
        action = ArraySpec((), "int64", (FIRST_ACTION,), (FIRST_ACTION + N_ACTIONS - 1,), N_ACTIONS)
    return GoalSpec(ArraySpec((observation,), "float64"), ArraySpec((goal,), "float64"), action, 50, *reward_range)


def make(name, seed=0, spec=None, **options):
    spec = spec or make_spec(is_discrete=name in DISCRETE_AGENTS)
    return make_agent(name, spec, AGENT_OPTIONS[name](**{"hidden": (16, 16), "device": "cpu", **options}), seed)


def random_options(name):
    """Options with as much randomness and as much state as the agent can have."""
    options = {"target_period": 2, "gradient_clip": 0.5}
    return options | ({} if name in DISCRETE_AGENTS else {"n_critics": 3, "n_target_critics": 2})


def make_batch(agent, seed=0, rows=32, sizes=SIZES):
    n_actions = agent.policy_spec.n_actions or None
    batch = random_batch(np.random.default_rng(seed), rows, agent.batches_per_update, sizes, n_actions)
    return replace(batch, action=batch.action + FIRST_ACTION) if n_actions else batch


def make_weighted_batch(agent, seed):
    """A batch with weights, and with discounts as for n-step returns."""
    batch, rng = make_batch(agent, seed), np.random.default_rng(seed)
    discount = 0.9 ** rng.integers(1, 4, batch.reward.shape) * ~batch.terminated
    weight = rng.uniform(0.1, 2.0, batch.reward.shape)
    return replace(batch, discount=discount.astype(np.float32), weight=weight.astype(np.float32))


def make_episode(seed, steps=5):
    rng = np.random.default_rng(seed)
    goal = rng.normal(size=(steps + 1, SIZES[1]))
    return Episode(rng.normal(2.0, 3.0, (steps + 1, SIZES[0])), goal, goal, np.zeros((steps, SIZES[2])), np.zeros(steps))


def critics_of(agent):
    return agent.algorithm.critic if hasattr(agent.algorithm, "critic") else agent.algorithm.critics


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in AGENT_NAMES),
        *((name, {"critic_layer_norm": True, "hidden": (8,)}) for name in AGENT_NAMES),
        *((name, {"clip_targets": False, "tau": 0.5}) for name in AGENT_NAMES),
        *((name, {"actor_layer_norm": True, "n_critics": 3, "action_l2": 1.0}) for name in CONTINUOUS_AGENTS),
        *((name, {"double": name == "qrdqn"}) for name in DISCRETE_AGENTS),
        ("dqn", {"dueling": True}),
        ("dqn", {"critic_error": "squared"}),
        ("tqc", {"top_quantiles_to_drop_per_net": 0}),
    ],
)
def test_updates_equal_the_reference_implementation(name, options):
    if name in ("tqc", "qrdqn"):
        options = {"n_quantiles": 5, **options}
    agent = make(name, normalize=False, **options)
    plain = PLAIN_AGENTS[name](agent)
    for step in range(6):
        batch = make_batch(agent, seed=step) if step < 3 else make_weighted_batch(agent, seed=step)
        metrics = agent.update(batch)
        assert ("priority" in metrics) == (step >= 3)
        counted = replace(batch, action=batch.action - FIRST_ACTION) if name in DISCRETE_AGENTS else batch
        expected = plain.update(counted if name == "td3" else counted[0])
        for metric in expected.keys() & metrics.keys():
            torch.testing.assert_close(metrics[metric], expected[metric], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(agent.algorithm.weights, plain.flat(), rtol=1e-3, atol=2e-5)
    targets = plain.flat_targets()[-len(agent.algorithm.target_weights) :]  # SAC has no target actor
    torch.testing.assert_close(agent.algorithm.target_weights, targets, rtol=1e-3, atol=2e-5)


def trained(name, **options):
    agent = make(name, critic_layer_norm=True, observe_achieved_goal=True, **options)
    for seed in range(3):
        agent.observe(make_episode(seed))
    agent.update(make_batch(agent))
    policy = Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    return agent, policy


@pytest.mark.parametrize("name", CONTINUOUS_AGENTS)
def test_numpy_policy_equals_the_actor(name):
    agent, policy = trained(name, actor_layer_norm=True)
    batch = make_batch(agent, seed=1)
    inputs = agent.algorithm.preprocessor.transitions(batch, agent.batches_per_update).inputs[0]
    expected = agent.algorithm.actor(inputs)[0, :, : SIZES[2]].tanh().numpy()
    actions = policy.predict(batch.observation[0], batch.achieved_goal[0], batch.goal[0])
    np.testing.assert_allclose(actions, expected, atol=1e-5)
    one = policy.act(batch.observation[0, 0], batch.achieved_goal[0, 0], batch.goal[0, 0])
    np.testing.assert_allclose(one, expected[0], atol=1e-5)


@pytest.mark.parametrize(("name", "options"), [("dqn", {}), ("dqn", {"dueling": True}), ("qrdqn", {"n_quantiles": 7})])
def test_numpy_policy_chooses_the_critics_best_action(name, options):
    agent, policy = trained(name, **options)
    algorithm, batch = agent.algorithm, make_batch(agent, seed=1, rows=200)
    outputs = algorithm.critic(algorithm.preprocessor.transitions(batch, 1).inputs[0])
    values = algorithm._quantiles(outputs)[0].mean(2)
    actions = policy.predict(batch.observation[0], batch.achieved_goal[0], batch.goal[0])
    assert actions.tolist() == (values.argmax(1) + FIRST_ACTION).tolist()
    assert len(set(actions.tolist())) > 1
    one = policy.act(batch.observation[0, 0], batch.achieved_goal[0, 0], batch.goal[0, 0])
    assert (one, one.shape, one.dtype) == (actions[0], (), np.int64)


BITS, CHOICE = ArraySpec((5,), "int8", (0.0,), (1.0,)), ArraySpec((), "int64", (1.0,), (6.0,), 6)
IMAGE = ArraySpec((6, 6, 2), "uint8", (0.0,), (255.0,))


@pytest.mark.parametrize(
    "options", [{}, {"observe_achieved_goal": True}, {"goal_features": "agreement"}, {"normalize": False}]
)
@pytest.mark.parametrize(
    ("observation", "goal"),
    [(BITS, BITS), (CHOICE, CHOICE), (IMAGE, BITS), (IMAGE, IMAGE), (ArraySpec((5,), "float64", (-3.0,), (3.0,)), BITS)],
)
def test_learning_and_acting_have_the_same_inputs(observation, goal, options):
    rng = np.random.default_rng(0)

    def draw(array, *leading):
        low, high = array.bounds()
        return rng.uniform(low, high + (array.dtype != "float64"), (*leading, *array.shape)).astype(array.dtype)

    spec = GoalSpec(observation, goal, ArraySpec((), "int64", (0.0,), (3.0,), 4))
    agent = make("dqn", spec=spec, **options)
    agent.observe(Episode(draw(observation, 9), draw(goal, 9), draw(goal, 9), np.zeros(8, np.int64), np.zeros(8)))
    batch = replace(
        random_batch(rng, 32, 1, n_actions=4),
        observation=draw(observation, 1, 32).astype("float32" if observation.dtype == "float64" else observation.dtype),
        next_observation=draw(observation, 1, 32),
        achieved_goal=draw(goal, 1, 32),
        next_achieved_goal=draw(goal, 1, 32),
        goal=draw(goal, 1, 32),
    )
    policy = Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    learnt = agent.algorithm.preprocessor.transitions(batch, 1)
    acted = policy.inputs((32,), (batch.observation[0], batch.achieved_goal[0], batch.goal[0]))
    assert learnt.inputs[0].numpy().tobytes() == acted.tobytes()
    assert np.abs(acted).max() > 0.9
    assert agent.update(batch)["critic_loss"].isfinite()


def make_for_images(name, **options):
    """An agent with images as observation and goal, and one action element."""
    is_discrete = name in DISCRETE_AGENTS
    action = make_spec((1, 1, 1), is_discrete=is_discrete).action
    return make(name, spec=GoalSpec(IMAGE, IMAGE, action, 50, -4.0, 0.0), image_channels=(4, 8), **options)


def make_image_batch(agent, rng, rows=64):
    """A batch of images with a dark or bright first pixel."""
    batch = make_batch(agent, int(rng.integers(1 << 31)), rows, (1, 1, 1))

    def draw():
        images = rng.integers(0, 60, (*batch.reward.shape, *IMAGE.shape), np.uint8)
        images[..., :3, :3, 0] += 195 * rng.integers(0, 2, (*batch.reward.shape, 1, 1), np.uint8)
        return images

    keys = ("observation", "next_observation", "goal", "achieved_goal", "next_achieved_goal")
    return replace(batch, **{key: draw() for key in keys})


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_learning_and_acting_have_the_same_image_features(name):
    agent, rng = make_for_images(name, goal_features="agreement"), np.random.default_rng(0)
    for _ in range(2):
        assert agent.update(make_image_batch(agent, rng))["critic_loss"].isfinite()
    policy = Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    batch = make_image_batch(agent, rng)
    inputs = agent.algorithm.preprocessor.transitions(batch, agent.batches_per_update).inputs[0]
    network = Network(agent.policy_spec.architecture, torch.from_numpy(agent.policy_weights().flat))
    expected = network(inputs)[0].numpy()
    observed = batch.observation[0], batch.achieved_goal[0], batch.goal[0]
    if name in DISCRETE_AGENTS:
        assert policy.predict(*observed).tolist() == (expected.argmax(1) + FIRST_ACTION).tolist()
        assert policy.act(*(part[0] for part in observed)) == expected[0].argmax() + FIRST_ACTION
    else:
        np.testing.assert_allclose(policy.predict(*observed), np.tanh(expected[:, :1]), atol=1e-5)
        np.testing.assert_allclose(policy.act(*(part[0] for part in observed)), np.tanh(expected[0, :1]), atol=1e-5)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_updates_are_the_same_in_inference_mode(name):
    """The gradients of convolutions come from autograd, which this mode turns off."""
    weights = []
    for is_inference in (False, True):
        agent, rng = make_for_images(name), np.random.default_rng(0)
        with torch.inference_mode(is_inference):
            for _ in range(3):
                agent.update(make_image_batch(agent, rng, 8))
        weights.append(agent.algorithm.weights.numpy().tobytes())
    assert weights[0] == weights[1]


@pytest.mark.parametrize("name", ["dqn", pytest.param("ddpg", marks=pytest.mark.slow)])
def test_agents_learn_from_images(name):
    """The reward is best for an action of 0.5, or a choice of 3, where the first pixel is bright, else for -0.5 and 2."""
    agent, rng = make_for_images(name, hidden=(32,), learning_rate=3e-3), np.random.default_rng(0)
    for _ in range(200):
        batch = make_image_batch(agent, rng)
        is_bright = batch.observation[..., 0, 0, 0] > 100
        if name == "dqn":
            reward = -(batch.action != FIRST_ACTION + is_bright).astype(np.float32)
        else:
            reward = -np.square(batch.action[..., 0] - (is_bright - 0.5)).astype(np.float32)
        agent.update(replace(batch, terminated=np.ones_like(batch.terminated), reward=reward))
    policy = Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    batch = make_image_batch(agent, rng)[0]
    is_bright = batch.observation[:, 0, 0, 0] > 100
    actions = policy.predict(batch.observation, batch.achieved_goal, batch.goal)
    right = actions == FIRST_ACTION + is_bright if name == "dqn" else (actions[:, 0] > 0) == is_bright
    assert right.mean() > 0.9


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_policy_weights_are_copies(name):
    agent = make(name)
    weights = agent.policy_weights()
    before = weights.flat.copy()
    agent.update(make_batch(agent))
    np.testing.assert_array_equal(weights.flat, before)
    assert not np.array_equal(agent.policy_weights().flat, before)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_only_the_same_seed_gives_the_same_bytes(name):
    states = []
    for seed in (3, 3, 4):
        agent = make(name, seed=seed, **random_options(name))
        torch.manual_seed(seed * len(states))  # the global generator must not matter
        for step in range(3):
            agent.observe(make_episode(step))
            agent.update(make_batch(agent, seed=step))
        states.append(agent.state_dict())
    assert_same(states[0], states[1])
    assert states[0]["weights"].tobytes() != states[2]["weights"].tobytes()


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_restored_agent_continues_with_the_same_bytes(name):
    options = random_options(name)
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


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_several_updates_at_once_equal_single_updates(name):
    options = random_options(name) | {"policy_ema": 0.5}
    together, single = make(name, **options), make(name, **options)
    size = together.batches_per_update
    batch = random_batch(np.random.default_rng(0), 32, 3 * size, SIZES, together.policy_spec.n_actions or None)
    batch = replace(batch, action=batch.action + FIRST_ACTION) if name in DISCRETE_AGENTS else batch
    metrics = together.updates(batch)
    expected = [single.update(batch[first : first + size]) for first in range(0, 3 * size, size)]
    assert [m["critic_loss"].item() for m in metrics] == [m["critic_loss"].item() for m in expected]
    assert_same(together.state_dict(), single.state_dict())


def test_several_updates_need_a_multiple_of_the_batches_of_one():
    agent = make("td3")
    with pytest.raises(ShapeError, match=r"expected shape \(2, B\).*got \(3, 32\)"):
        agent.updates(random_batch(np.random.default_rng(0), 32, 3, SIZES))
    with pytest.raises(ShapeError, match=r"expected shape \(2, B\).*got \(1, 32\)"):
        agent.updates(random_batch(np.random.default_rng(0), 32, 1, SIZES))


def without(state, name):
    return {key: value for key, value in state.items() if key != name}


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_state_that_does_not_fit_changes_nothing(name):
    agent = make(name)
    state, other = agent.state_dict(), make(name, hidden=(8, 8)).state_dict()
    has_entropy = name in ("sac", "tqc")
    foreign = make("td3" if has_entropy else "sac").state_dict()
    damaged = {**state, "generator": np.zeros_like(state["generator"])}
    cases = [
        (without(state, "targets"), "targets"),
        ({**state, "extra": np.zeros(1)}, "extra"),
        (other, "weights"),
        ({**state, "weights": state["weights"].astype(np.float64)}, "float64"),
        (foreign, "entropy" if has_entropy else "log_coefficient"),
        (damaged, "generator"),
    ]
    for bad, word in cases:
        with pytest.raises(FileError, match=word):
            agent.load_state_dict(bad)
        assert_same(agent.state_dict(), state)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_termination_stops_the_bootstrap(name):
    """If every transition terminated, next observations do not change the critics."""
    agents = make(name), make(name)
    batch = make_batch(agents[0])
    for is_end, agree in ((True, True), (False, False)):
        ends = replace(batch, terminated=np.full_like(batch.terminated, is_end))
        for agent, scale in zip(agents, (1.0, 3.0), strict=True):
            agent.update(replace(ends, next_observation=batch.next_observation * scale))
        assert torch.equal(critics_of(agents[0]).flat, critics_of(agents[1]).flat) == agree


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_the_discount_of_a_batch_replaces_the_agents(name):
    batch = make_batch(make(name))
    given = replace(batch, discount=(0.5 * ~batch.terminated).astype(np.float32))
    agents = [make(name, clip_targets=False, **options) for options in ({}, {"discount": 0.5}, {})]
    for agent, its_batch in zip(agents, (given, batch, batch), strict=True):
        agent.update(its_batch)
    first, same, other = (critics_of(agent).flat for agent in agents)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_rows_of_weight_0_do_not_change_the_critics(name):
    agents = make(name), make(name)
    batch = make_batch(agents[0])
    weight = (np.arange(32) % 2 * np.ones_like(batch.reward)).astype(np.float32)
    other_reward = batch.reward - 5 * (1 - weight)
    metrics = [
        agent.update(replace(batch, weight=weight, reward=reward))
        for agent, reward in zip(agents, (batch.reward, other_reward), strict=True)
    ]
    assert torch.equal(critics_of(agents[0]).flat, critics_of(agents[1]).flat)
    first, second = (m["priority"] for m in metrics)
    assert first.shape == second.shape == (agents[0].batches_per_update, 32)
    assert ((first == second) == torch.from_numpy(weight > 0)).all()  # but their errors are returned


def targets_of(agent, batch):
    transitions = agent.algorithm.preprocessor.transitions(batch, agent.batches_per_update)
    if hasattr(agent.algorithm, "_td_targets"):
        return agent.algorithm._td_targets(transitions)
    coefficient = [torch.tensor(2.0)] if hasattr(agent.algorithm, "log_coefficient") else []
    return agent.algorithm._td_target(transitions[0], *coefficient)


def fill_next_values(agent, value):
    """Make every next value about `value`."""
    networks = agent.algorithm
    (networks.target_critics if hasattr(networks, "target_critics") else networks.target_critic).layers[-1][1].fill_(value)


@pytest.mark.parametrize("name", ["dqn", "qrdqn", "ddpg", "td3"])
def test_targets_are_clipped_to_the_possible_returns(name):

    def targets(next_value, **options):
        agent = make(name, discount=0.9, **options)
        fill_next_values(agent, next_value)
        batch = make_batch(agent)
        batch.terminated[:, 0], batch.reward[:, 0] = True, -1.0
        return targets_of(agent, batch)

    assert (targets(1000.0).min(), targets(1000.0).max()) == (-1, 0)  # the target of a terminated row is its reward
    assert targets(-1000.0).min() == pytest.approx(-10)
    assert targets(1000.0, clip_targets=False).max() > 800


@pytest.mark.parametrize("name", ["sac", "tqc"])
def test_the_value_is_clipped_but_not_the_entropy(name):
    agent = make(name, discount=0.9, entropy_coefficient=2.0)
    fill_next_values(agent, 1000.0)
    assert 0 < targets_of(agent, make_batch(agent)).max() < 20  # the value is clipped to 0, the entropy bonus remains


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_targets_are_updated_at_their_period(name):
    agent = make(name, tau=1.0, target_period=2)
    algorithm, batch = agent.algorithm, make_batch(agent)
    before = algorithm.target_weights.clone()
    agent.update(batch)
    assert torch.equal(algorithm.target_weights, before)
    agent.update(batch)
    assert torch.equal(algorithm.target_weights, algorithm.weights[-len(before) :])


@pytest.mark.parametrize("name", CONTINUOUS_AGENTS)
def test_actions_are_scaled_by_their_bounds(name):
    """Bounds 0 and 10 with scaled actions give the same update as -1 and 1."""
    plain, scaled = make(name), make(name, spec=make_spec(low=0.0, high=10.0))
    batch = make_batch(plain)
    plain.update(batch)
    scaled.update(replace(batch, action=(batch.action + 1) * 5))
    torch.testing.assert_close(plain.algorithm.weights, scaled.algorithm.weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_metrics_are_tensors_and_not_finite_if_the_weights_are_not(name):
    agent = make(name)
    metrics = agent.update(make_batch(agent))
    assert {"critic_loss", "q_mean"} <= metrics.keys()
    assert all(isinstance(value, torch.Tensor) and value.shape == () for value in metrics.values())
    assert agent.is_finite()
    critics_of(agent).flat[0] = torch.nan
    assert not agent.is_finite()
    assert not torch.isfinite(agent.update(make_batch(agent))["critic_loss"])


def test_the_exploration_of_each_agent():
    td3, sac = make("td3", noise=0.3, random_eps=0.1), make("sac")
    assert td3.exploration(False) == Exploration(random_eps=0.1, noise=0.3, is_random=False, samples=False)
    assert sac.exploration(True, 9) == Exploration(random_eps=0.0, noise=0.0, is_random=True, samples=True)
    dqn = make("dqn", initial_eps=0.9, random_eps=0.1, eps_steps=100)
    assert dqn.exploration(False, 0) == Exploration(random_eps=0.9, noise=0.0, is_random=False, samples=False)
    assert dqn.exploration(False, 50).random_eps == pytest.approx(0.5)
    assert dqn.exploration(False, 1000).random_eps == 0.1
    assert make("qrdqn", random_eps=0.1).exploration(False, 0).random_eps == 0.1
    later = make("td3", random_eps=0.2, noise=0.4, exploration_decay=0.5, exploration_decay_start=100)
    before_and_after = [later.exploration(False, steps) for steps in (99, 100)]
    assert [(each.random_eps, each.noise) for each in before_and_after] == [(0.2, 0.4), (0.1, 0.2)]
    for options in (
        {"exploration_decay": 0.5},
        {"exploration_decay_start": 100},
        {"exploration_decay": 0.5, "exploration_decay_start": -1},
    ):
        with pytest.raises(OptionError, match="exploration_decay"):
            make("td3", **options)


@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in AGENT_NAMES), *((name, {"double": False}) for name in DISCRETE_AGENTS)]
)
def test_the_next_action_has_inputs_of_its_own(name, options):
    subgoals = ("near achieved=0,1 goal=2,3 tolerance=0.1 switch_distance=0.5",)
    errors = []
    for switch_distance in (None, "next_policy_inputs", "next_inputs"):
        agent = make(name, subgoals=subgoals, **options)
        batch = make_batch(agent)
        transitions = agent.algorithm.preprocessor.transitions(batch, agent.batches_per_update)
        if switch_distance:
            setattr(transitions, switch_distance, getattr(transitions, switch_distance).flip(-2))
        errors.append(float(agent.algorithm.learn(transitions)["critic_loss"]))
    assert len(set(errors)) == 3


@pytest.mark.parametrize("name", ["ddpg", "td3", "sac", pytest.param("tqc", marks=pytest.mark.slow)])
def test_a_continuous_one_step_task_is_learnt(name):
    """The reward is minus the squared distance of action and goal. Every step terminates. The best action is the goal."""
    spec = make_spec((2, 2, 2), reward_range=(-8.0, 0.0))
    agent = make(name, spec=spec, hidden=(32, 32), learning_rate=3e-3, action_l2=0.0, normalize=False)
    rng = np.random.default_rng(0)
    for _ in range(600 // agent.batches_per_update):
        batch = random_batch(rng, 64, agent.batches_per_update, (2, 2, 2))
        goal = rng.uniform(-0.8, 0.8, batch.goal.shape).astype(np.float32)
        reward = -np.square(batch.action - goal).sum(-1)
        agent.update(replace(batch, terminated=np.ones_like(batch.terminated), goal=goal, reward=reward))
    policy = Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    goals = rng.uniform(-0.8, 0.8, (200, 2))
    actions = policy.predict(rng.normal(size=(200, 2)), goals, goals)
    assert np.abs(actions - goals).mean() < 0.1


@pytest.mark.parametrize("name", ["dqn", pytest.param("qrdqn", marks=pytest.mark.slow)])
def test_a_discrete_one_step_task_is_learnt(name):
    """The reward is 0 if the action's binary digits are the signs of the goal, otherwise -1. Every step terminates."""
    agent = make(name, hidden=(32, 32), learning_rate=3e-3, normalize=False)
    rng = np.random.default_rng(0)
    for _ in range(500):
        batch = make_batch(agent, seed=int(rng.integers(1 << 31)), rows=64)
        right = FIRST_ACTION + (batch.goal > 0) @ [1, 2]
        reward = -(batch.action != right).astype(np.float32)
        agent.update(replace(batch, terminated=np.ones_like(batch.terminated), reward=reward))
    policy = Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    goals = rng.normal(size=(200, 2))
    actions = policy.predict(rng.normal(size=(200, SIZES[0])), goals, goals)
    assert (actions == FIRST_ACTION + (goals > 0) @ [1, 2]).mean() > 0.9


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_wrong_action_space_is_refused_with_the_agents_that_fit(name):
    is_discrete = name in DISCRETE_AGENTS
    with pytest.raises(GoalEnvError, match="ddpg, td3, sac, tqc" if is_discrete else "dqn, qrdqn"):
        make(name, spec=make_spec(is_discrete=not is_discrete))


@pytest.mark.parametrize(("name", "options"), [("dqn", {"dueling": True}), ("qrdqn", {})])
def test_more_actions_than_matrices_can_have_are_refused_before_memory_is_allocated(name, options):
    spec = replace(make_spec(), action=ArraySpec((), "int64", (0.0,), (10.0**6 - 1,), 10**6))
    with pytest.raises(OptionError, match=r"1,000,000 actions are too many with dueling=True or .* quantiles"):
        make(name, spec=spec, **options)


def test_a_state_of_another_size_is_refused_before_the_agent_is_made():
    options = AGENT_OPTIONS["td3"](hidden=(4096,) * 16, device="cpu")
    with pytest.raises(FileError, match=r"has [\d,]+ weights, but those that are stored have the shape \(3,\)"):
        make_agent("td3", make_spec(), options, 0, {"weights": np.zeros(3, np.float32)})


def test_agents_are_made_by_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'td3'"):
        make_agent("td33", make_spec(), DDPGOptions(), 0)
    with pytest.raises(OptionError, match="TD3Options, got DDPGOptions"):
        make_agent("td3", make_spec(), DDPGOptions(), 0)


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_evaluation_uses_the_ema_and_collection_the_policy(name):
    agent, plain = make(name, policy_ema=0.25), make(name)
    start = agent.policy_weights().flat
    for each in (agent, plain):
        each.update(make_batch(each))
    policy = plain.policy_weights().flat
    assert agent.collecting_weights().flat.tobytes() == plain.collecting_weights().flat.tobytes() == policy.tobytes()
    assert agent.policy_weights().flat == pytest.approx(start + 0.25 * (policy - start), abs=1e-7)
    other = make(name, seed=1, policy_ema=0.25)
    other.load_state_dict(agent.state_dict())
    assert other.policy_weights().flat.tobytes() == agent.policy_weights().flat.tobytes()


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_values_are_those_of_the_greedy_actions(name):
    agent, episode = make(name, n_quantiles=5) if "q" in name[:3] and name != "dqn" else make(name), make_episode(3)
    agent.observe(episode)
    algorithm, policy = agent.algorithm, Policy(agent.policy_spec)
    policy.load(agent.policy_weights())
    observed = [getattr(episode, key)[:-1] for key in ("observation", "achieved_goal", "desired_goal")]
    action = policy.predict(*observed)
    inputs = torch.from_numpy(policy.inputs((len(action),), tuple(observed)))
    if name in DISCRETE_AGENTS:
        quantiles = critics_of(agent)(inputs)[0].view(len(action), N_ACTIONS, -1).mean(2)
        expected = quantiles[np.arange(len(action)), action - FIRST_ACTION]
    else:
        critics = algorithm.critics(torch.cat((inputs, torch.from_numpy(action.astype(np.float32))), 1))
        expected = sum(critic.mean(1) for critic in critics) / len(critics)
    assert agent.values(episode) == pytest.approx(expected.numpy(), abs=1e-5)
    assert agent.values(episode).shape == (5,)


@pytest.mark.parametrize(("goal", "plans", "knows"), [((2,), True, True), ((7,), True, False), ((2,), False, False)])
def test_a_path_is_known_if_one_leads_from_the_start_of_an_episode_to_its_goal(goal, plans, knows):
    """A goal that asks for a part, or that nobody saw, has none: there the networks act, and need all updates."""
    planner = SimpleNamespace(action=lambda seen, achieved, desired, discount: NO_PATH if desired[0] == 7 else 0)
    options = SimpleNamespace(discount=0.9)
    agent = SimpleNamespace(planner=planner, plans_states=plans, policy_spec=SimpleNamespace(options=options))
    rows = np.zeros((2, 1))
    episode = Episode(rows, rows, np.tile(goal, (2, 1)), np.zeros(1), np.zeros(1))
    assert Agent.knows_path(agent, episode) is knows

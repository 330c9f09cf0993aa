import subprocess
import sys

import numpy as np
import pytest

from hindsight_rl.agents.forward import count_weights, layer_views
from hindsight_rl.agents.policy import Policy, PolicySpec, PolicyWeights
from hindsight_rl.errors import GoalEnvError, InputError
from hindsight_rl.options.agent import DDPGOptions, DQNOptions, SACOptions
from hindsight_rl.records import ArraySpec, GoalSpec
from hindsight_rl.records.exploration import Exploration


def box(size, low=-1.0, high=1.0, dtype="float32"):
    return ArraySpec((size,), dtype, (low,), (high,))


def choice(start, n_values):
    return ArraySpec((), "int64", (float(start),), (float(start + n_values - 1),), n_values)


OPTIONS = {"deterministic": DDPGOptions, "squashed_gaussian": SACOptions, "discrete": DQNOptions}


def make_spec(kind="deterministic", observation=None, goal=None, action=None, **options):
    task = GoalSpec(observation or box(2, -np.inf, np.inf), goal or box(1), action or box(1))
    return PolicySpec(task, OPTIONS[kind](**{"hidden": (2,), "image_channels": (2,), **options}))


def make_policy(flat=None, mean=None, scale=None, **changes):
    spec = make_spec(**changes)
    if flat is None:
        flat = np.random.default_rng(0).normal(0, 0.5, count_weights(spec.architecture.sizes))
    mean = np.zeros(spec.layout.size) if mean is None else np.array(mean)
    scale = np.ones(spec.layout.size) if scale is None else np.array(scale)
    policy = Policy(spec)
    policy.load(PolicyWeights(*(np.asarray(a, np.float32) for a in (flat, mean, scale))))
    return policy


def test_layer_views_are_in_order_with_the_weight_before_the_bias():
    flat = np.arange(count_weights((2, 3, 1), n_members=2))
    (weight1, bias1), (weight2, bias2) = layer_views(flat, (2, 3, 1), n_members=2)
    assert weight1.tolist() == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]
    assert bias1.tolist() == [[12, 13, 14], [15, 16, 17]]
    assert weight2.tolist() == [[[18, 19, 20]], [[21, 22, 23]]]
    assert bias2.tolist() == [[24], [25]]
    assert all(np.shares_memory(flat, view) for layer in ((weight1, bias1), (weight2, bias2)) for view in layer)


def test_sizes_of_weights_are_checked_before_the_columns_of_images_are_listed():
    spec = make_spec(observation=ArraySpec((20_000, 20_000, 3), "uint8", (0.0,), (255.0,)))
    with pytest.raises(InputError, match=r"Expected shape \(1200000001,\) and float32 for `input_mean`, got \(3,\)"):
        spec.check(PolicyWeights(*(np.zeros(3, np.float32),) * 3))


def test_acting_by_hand():
    # inputs (3, 1, 2) - (1, 1, 0) times (1, 1, 4), clipped to 5: (2, 0, 5)
    # hidden: (2 * 1 + 5 * 0 + 1, 2 * 0 - 5 * 1 + 1) = (3, -4), after ReLU (3, 0); output 0.2 * 3 - 0.1 = 0.5
    flat = [1, 0, 0, 0, 0, -1, 1, 1, 0.2, 9, -0.1]  # one row per output, then the bias
    policy = make_policy(flat, mean=[1, 1, 0], scale=[1, 1, 4])
    action = policy.act(np.array([3.0, 1.0]), np.array([9.0]), np.array([2.0]))
    assert action.shape == (1,)
    assert action.dtype == np.float32
    assert action[0] == pytest.approx(np.tanh(0.5), rel=1e-6)


def test_the_achieved_goal_is_the_last_input():
    flat = np.zeros(count_weights((4, 1)))
    flat[3] = 1.0
    policy = make_policy(flat, hidden=(), observe_achieved_goal=True)
    action = policy.act(np.array([9.0, 9.0]), np.array([0.5]), np.array([9.0]))
    assert action[0] == pytest.approx(np.tanh(0.5))


def test_layer_norm_by_hand():
    # hidden before the norm (1, 3): after it (-1, 1), after ReLU (0, 1)
    flat = [1, 0, 0, 3, 0, 0, 0, 0, 5, 0.5, 0]
    policy = make_policy(flat, actor_layer_norm=True)
    action = policy.act(np.array([1.0, 0.0]), np.array([0.0]), np.array([0.0]))
    assert action[0] == pytest.approx(np.tanh(0.5), abs=1e-5)


def test_actions_have_the_units_shape_and_dtype_of_the_environment():
    changes = {"action": ArraySpec((2, 1), "float64", (0.0, -4.0), (10.0, 0.1))}
    flat = np.zeros(count_weights((3, 2)))
    flat[-2:] = [50.0, -50.0]  # tanh 1 and -1
    action = make_policy(flat, hidden=(), **changes).act(np.zeros(2), np.zeros(1), np.zeros(1))
    assert action.tolist() == [[10.0], [-4.0]]
    assert action.dtype == np.float64


def test_an_action_scale_of_a_quarter_uses_the_middle_quarter_of_the_range():
    flat = np.zeros(count_weights((3, 2)))
    flat[-2:] = [50.0, -50.0]  # tanh 1 and -1
    policy = make_policy(flat, hidden=(), action=ArraySpec((2,), "float32", (0.0, -4.0), (16.0, 0.0)), action_scale=0.25)
    observed = np.zeros(2), np.zeros(1), np.zeros(1)
    assert policy.act(*observed).tolist() == [10.0, -2.5]
    explore = Exploration(random_eps=0.0, noise=0.0, is_random=True)
    actions = np.array([policy.act(*observed, explore, np.random.default_rng(i)) for i in range(500)])
    assert (actions >= [6.0, -2.5]).all()
    assert (actions <= [10.0, -1.5]).all()


def test_noise_is_in_half_widths_and_clipped_to_the_bounds():
    policy = make_policy(np.zeros(count_weights((3, 1))), hidden=(), action=box(1, -10.0, 30.0))
    rng = np.random.default_rng(0)
    parts = np.zeros((5000, 2)), np.zeros((5000, 1)), np.zeros((5000, 1))
    actions = policy.predict(*parts, Exploration(random_eps=0.0, noise=0.1), rng)
    assert actions.std() == pytest.approx(0.1 * 20, rel=0.05)
    assert actions.mean() == pytest.approx(10, abs=0.1)
    wide = policy.predict(*parts, Exploration(random_eps=0.0, noise=9.0), rng)
    assert (wide.min(), wide.max()) == (-10.0, 30.0)


def test_random_eps_is_the_fraction_of_uniform_actions():
    policy = make_policy(np.zeros(count_weights((3, 1))), hidden=())
    parts = np.zeros((5000, 2)), np.zeros((5000, 1)), np.zeros((5000, 1))
    actions = policy.predict(*parts, Exploration(random_eps=0.3, noise=0.0), np.random.default_rng(0))
    sampled = actions[actions != 0]
    assert len(sampled) / 5000 == pytest.approx(0.3, abs=0.03)
    assert abs(sampled).max() <= 1
    assert sampled.std() == pytest.approx(1 / 3**0.5, rel=0.05)


def test_random_actions_are_uniform_and_need_no_weights():
    policy = Policy(make_spec(action=box(1, 2.0, 4.0)))
    rng = np.random.default_rng(0)
    observed = np.zeros(2), np.zeros(1), np.zeros(1)
    explore = Exploration(random_eps=0.0, noise=0.0, is_random=True)
    actions = np.array([policy.act(*observed, explore, rng) for _ in range(2000)])
    assert actions.mean() == pytest.approx(3, abs=0.05)
    assert 2 <= actions.min() < 2.05
    assert 3.95 < actions.max() <= 4


def test_a_stochastic_policy_samples_around_its_mean():
    flat = np.zeros(count_weights((3, 2)))
    flat[-2:] = [0.5, np.log(0.3)]  # mean and log standard deviation
    policy = make_policy(flat, hidden=(), kind="squashed_gaussian")
    parts = np.zeros((5000, 2)), np.zeros((5000, 1)), np.zeros((5000, 1))
    before = np.arctanh(policy.predict(*parts, Exploration(0.0, 0.0, samples=True), np.random.default_rng(0)))
    assert before.mean() == pytest.approx(0.5, abs=0.02)
    assert before.std() == pytest.approx(0.3, rel=0.05)
    assert np.unique(policy.predict(*parts)).tolist() == [pytest.approx(np.tanh(0.5))]


def make_chooser(values, **changes):
    """A policy with constant values of its actions 5, 6 and 7."""
    flat = np.zeros(count_weights((3, 3)))
    flat[-3:] = values
    return make_policy(flat, hidden=(), kind="discrete", action=choice(5, 3), **changes)


def test_a_discrete_action_is_a_number_of_the_environment():
    policy, observed = make_chooser([0.0, 2.0, 1.0]), (np.zeros(2), np.zeros(1), np.zeros(1))
    action = policy.act(*observed)
    assert (action, action.shape, action.dtype) == (6, (), np.int64)
    assert {6: "a key"}[action]
    assert policy.predict(np.zeros((2, 2)), np.zeros((2, 1)), np.zeros((2, 1))).tolist() == [6, 6]


def test_discrete_actions_are_explored_uniformly():
    policy, rng = make_chooser([0.0, 2.0, 1.0]), np.random.default_rng(0)
    rows = np.zeros((6000, 2)), np.zeros((6000, 1)), np.zeros((6000, 1))
    counts = [
        np.bincount(policy.predict(*rows, Exploration(0.3, 0.0, is_random), rng), minlength=8)[5:] / 6000
        for is_random in (False, True)
    ]
    np.testing.assert_allclose(counts[0], [0.1, 0.8, 0.1], atol=0.02)
    np.testing.assert_allclose(counts[1], [1 / 3] * 3, atol=0.02)
    alone = {int(policy.act(*(part[0] for part in rows), Exploration(1.0, 0.0), rng)) for _ in range(100)}
    assert alone == {5, 6, 7}
    assert Policy(policy.spec).act(*(part[0] for part in rows), Exploration(0.0, 0.0, is_random=True), rng) in (5, 6, 7)


def test_the_distribution_over_discrete_actions_is_the_sampled_one():
    policy, observed = make_chooser([0.0, 2.0, 1.0]), (np.zeros(2), np.zeros(1), np.zeros(1))
    assert policy.distribution(*observed).tolist() == [0, 1, 0]
    np.testing.assert_allclose(policy.distribution(*observed, Exploration(0.3, 0.0)), [0.1, 0.8, 0.1])
    np.testing.assert_allclose(policy.distribution(*observed, Exploration(0.3, 0.0, is_random=True)), [1 / 3] * 3)
    rows = np.zeros((2, 2)), np.zeros((2, 1)), np.zeros((2, 1))
    assert policy.distribution(*rows).tolist() == [[0, 1, 0], [0, 1, 0]]
    assert policy.log_probability(*rows, np.array([6, 7])).tolist() == [0, -np.inf]
    assert policy.log_probability(*rows, np.array([4, 8]), Exploration(1.0, 0.0)).tolist() == [-np.inf, -np.inf]
    assert np.exp(policy.log_probability(*observed, np.int64(7), Exploration(0.3, 0.0))) == pytest.approx(0.1)


def make_sampler(mean, deviation, action):
    """A Gaussian policy with constant mean and standard deviation."""
    flat = np.zeros(count_weights((3, 2 * len(mean))))
    flat[-2 * len(mean) :] = [*mean, *np.log(deviation)]
    return make_policy(flat, hidden=(), kind="squashed_gaussian", action=action)


def test_the_distribution_of_a_gaussian_policy_is_the_one_before_tanh():
    policy = make_sampler([0.5, -1.0], [0.3, 2.0], box(2, -2.0, 6.0))
    observed, rows = (np.zeros(2), np.zeros(1), np.zeros(1)), (np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 1)))
    mean, deviation = policy.distribution(*observed)
    np.testing.assert_allclose((mean, deviation), [[0.5, -1.0], [0.3, 2.0]], rtol=1e-6)
    assert [part.shape for part in policy.distribution(*rows)] == [(3, 2), (3, 2)]


def test_the_density_is_that_of_sampled_actions():
    policy = make_sampler([0.5], [0.8], box(1, -2.0, 6.0))
    n = 100_000
    sampled = policy.predict(
        np.zeros((n, 2)), np.zeros((n, 1)), np.zeros((n, 1)), Exploration(0.0, 0.0, samples=True), np.random.default_rng(0)
    )
    counts, edges = np.histogram(sampled, bins=20, range=(-2.0, 6.0))
    middle = (edges[1:] + edges[:-1]) / 2
    density = np.exp(policy.log_probability(np.zeros((20, 2)), np.zeros((20, 1)), np.zeros((20, 1)), middle[:, None]))
    np.testing.assert_allclose(density, counts / n / 0.4, rtol=0.15, atol=0.004)
    observed = np.zeros(2), np.zeros(1), np.zeros(1)
    at_bound, beyond = (policy.log_probability(*observed, np.array([a], np.float32)) for a in (6.0, 6.1))
    assert np.isfinite(at_bound)
    assert beyond == -np.inf
    assert at_bound.shape == ()


def test_the_density_of_several_elements_is_their_product():
    both = make_sampler([0.5, -1.0], [0.3, 2.0], box(2)), np.array([0.2, -0.4])
    alone = [make_sampler([m], [d], box(1)) for m, d in ((0.5, 0.3), (-1.0, 2.0))]
    observed = np.zeros(2), np.zeros(1), np.zeros(1)
    expected = sum(policy.log_probability(*observed, both[1][i : i + 1]) for i, policy in enumerate(alone))
    assert both[0].log_probability(*observed, both[1]) == pytest.approx(expected)


def test_a_deterministic_policy_has_no_distribution():
    observed = np.zeros(2), np.zeros(1), np.zeros(1)
    with pytest.raises(InputError, match="deterministic policy has no distribution"):
        make_policy().distribution(*observed)
    with pytest.raises(InputError, match="deterministic"):
        make_policy().log_probability(*observed, np.zeros(1))


def test_act_and_predict_agree():
    rng = np.random.default_rng(0)
    for kind in ("deterministic", "squashed_gaussian"):
        policy = make_policy(hidden=(8, 8), kind=kind, actor_layer_norm=True, observe_achieved_goal=True)
        rows = rng.normal(size=(5, 2)), rng.normal(size=(5, 1)), rng.normal(size=(5, 1))
        alone = [policy.act(*(part[i] for part in rows)) for i in range(5)]
        np.testing.assert_allclose(policy.predict(*rows), alone, atol=1e-6)


def test_the_same_generator_gives_the_same_action():
    policy, observed = make_policy(kind="squashed_gaussian"), (np.ones(2), np.ones(1), np.ones(1))
    explore = Exploration(0.2, 0.1, samples=True)
    first, second = (policy.act(*observed, explore, np.random.default_rng(7)) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_missing_weights_generator_and_wrong_shapes_are_refused():
    observed = np.zeros(2), np.zeros(1), np.zeros(1)
    with pytest.raises(InputError, match="load"):
        Policy(make_spec()).act(*observed)
    with pytest.raises(InputError, match="generator"):
        make_policy().act(*observed, Exploration(0.1, 0.1))
    with pytest.raises(InputError, match=r"Expected shape \(11,\) and float32 for `flat`, got \(3,\) float32"):
        make_policy(np.zeros(3))
    weights = PolicyWeights(np.zeros(11), np.zeros(3, np.float32), np.zeros(3, np.float32))
    with pytest.raises(InputError, match="float64"):
        Policy(make_spec()).load(weights)


@pytest.mark.parametrize(
    ("action", "word"),
    [
        (choice(3, 4), r"Discrete\(4\).*dqn, qrdqn"),
        (box(4, 0.0, 1.0, "int8"), "int8"),
        (box(1, -np.inf, np.inf), "Declare such bounds, or use gymnasium.wrappers.TransformAction"),
        (ArraySpec((2,), "float32", (0.0, 1.0), (1.0, 1.0)), "below"),
    ],
)
def test_unsupported_continuous_actions_are_refused(action, word):
    with pytest.raises(GoalEnvError, match=word):
        make_spec(action=action)


@pytest.mark.parametrize(
    ("action", "word"), [(box(1), "ddpg, td3, sac, tqc"), (box(4, 0.0, 1.0, "int8"), "TransformAction")]
)
def test_a_box_is_refused_for_discrete_agents(action, word):
    with pytest.raises(GoalEnvError, match=word):
        make_spec("discrete", action=action)


def test_sizes_and_layer_norm_follow_from_the_options():
    options = {"hidden": (8,), "observe_achieved_goal": True, "goal_features": "relative", "critic_layer_norm": True}
    spec = make_spec("squashed_gaussian", **options)
    assert (spec.architecture.sizes, spec.architecture.layer_norm) == ((5, 8, 2), False)
    chooser = make_spec("discrete", action=choice(3, 4), **options)
    assert (chooser.architecture.sizes, chooser.architecture.layer_norm) == ((5, 8, 4), True)


def test_workers_need_no_torch():
    code = "import sys, hindsight_rl.agents, hindsight_rl.agents.policy, hindsight_rl.options, hindsight_rl.agents.layout; "
    code += "print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


NEAR = "near achieved=0 goal=1 tolerance=0.5 switch_distance=2"


def with_subgoals(**changes):
    """A policy with the action tanh(0.1 * goal + 0.01 * subgoal column)."""
    flat = np.zeros(count_weights((4, 1)))
    flat[2:4] = 0.1, 0.01
    return make_policy(flat, hidden=(), subgoals=(NEAR,), **changes)


@pytest.mark.parametrize(
    ("observed", "guided_fraction", "goal", "flag"),
    [
        ([0.0, 3.0], 0.0, 3.0, 1),  # farther than switch_distance: act for the subgoal
        ([0.0, 1.0], 0.0, 5.0, 0),  # nearer: act for the task's goal
        ([0.0, 1.0], 1.0, 1.0, 1),  # guided, and farther than the tolerance
        ([0.0, 0.25], 1.0, 5.0, 0),  # met
    ],
)
def test_the_policy_acts_for_a_subgoal_that_is_not_met(observed, guided_fraction, goal, flag):
    guided = Exploration(random_eps=0.0, noise=0.0, guided_fraction=guided_fraction) if guided_fraction else None
    observed, generator = (np.array(observed), np.array([0.0]), np.array([5.0])), np.random.default_rng(0)
    expected = np.tanh(0.1 * goal + 0.01 * flag)
    assert with_subgoals().act(*observed, guided, generator)[0] == pytest.approx(expected, rel=1e-6)
    rows = [np.stack([part, part]) for part in observed]
    assert with_subgoals().predict(*rows, guided, generator)[:, 0] == pytest.approx([expected, expected], rel=1e-6)


def test_a_guided_episode_is_guided_in_a_fraction_of_its_steps():
    guided, generator = Exploration(random_eps=0.0, noise=0.0, guided_fraction=0.25), np.random.default_rng(0)
    policy, observed = with_subgoals(), (np.array([0.0, 1.0]), np.array([0.0]), np.array([5.0]))
    actions = np.array([policy.act(*observed, guided, generator)[0] for _ in range(1000)])
    assert np.mean(actions < 0.2) == pytest.approx(0.25, abs=0.04)
    alone = guided.unguided()
    assert policy.act(*observed, alone, generator)[0] == pytest.approx(np.tanh(0.5), rel=1e-6)


def test_a_discrete_policy_is_guided_to_subgoals_too():
    """By hand: action 3 has the value of the goal, which is 1 for the subgoal and 5 for the task, and action 4 has 2."""
    flat = np.zeros(count_weights((4, 2)))
    flat[2], flat[-1] = 1.0, 2.0  # a weight of the first action, and the bias of the second
    policy = make_policy(flat, kind="discrete", action=choice(3, 2), hidden=(), subgoals=(NEAR,))
    observed = np.array([0.0, 1.0]), np.array([0.0]), np.array([5.0])
    for fraction, action in [(0.0, 3), (1.0, 4)]:
        guided = Exploration(random_eps=0.0, noise=0.0, guided_fraction=fraction)
        assert policy.act(*observed, guided, np.random.default_rng(0)) == action


def test_an_unguided_episode_has_half_the_noise():
    alone = Exploration(random_eps=0.3, noise=0.2, guided_episodes=0.8, guided_fraction=0.5).unguided()
    assert (alone.random_eps, alone.noise, alone.guided_fraction) == (0.15, 0.1, 0.0)


def test_a_known_path_to_the_goal_counts_more_than_the_network():
    cell = ArraySpec((1,), "int64", (0.0,), (3.0,))
    spec = make_spec("discrete", cell, cell, choice(4, 3), plan_states=True)
    states = np.array([[0, 0], [1, 1], [2, 2]], np.int32)
    transitions = np.array([[0, 0, 0, 1], [0, 1, 1, 1], [1, 2, 2, 1]], np.int32)
    last_layer = np.zeros(3 * 2 + 3)
    last_layer[-3] = 1.0  # the network always prefers action 4
    flat = np.concatenate([np.zeros(spec.architecture.n_weights - 9), last_layer]).astype(np.float32)
    size = np.zeros(spec.layout.size, np.float32)
    policy = Policy(spec)
    policy.load(PolicyWeights(flat, size, size + 1, visited_states=states, transitions=transitions))
    cells, goals = np.array([[0], [1], [2], [3]]), np.full((4, 1), 2)
    assert policy.act(cells, cells, goals).tolist() == [5, 6, 4, 4]
    assert [policy.act(c, c, g) for c, g in zip(cells, goals, strict=True)] == [5, 6, 4, 4]
    assert policy.distribution(cells[0], cells[0], goals[0]).tolist() == [0, 1, 0]
    with pytest.raises(InputError):
        policy.load(PolicyWeights(flat, size, size + 1, visited_states=states[:2], transitions=transitions))

"""Every rule, broken once: the report names it, and nothing is raised."""

import itertools

import gymnasium
import numpy as np
import pytest
from docking_env import Docking
from gymnasium import spaces
from line_env import Costly, Distant, Line, Scalar, Terminating, TerminatingOneByOne, near
from push_box_env import PushBox

from hindsight_rl import HER, make_buffer
from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.envs.goal_env import read_spec
from hindsight_rl.envs.probe import Probe
from hindsight_rl.envs.reward_rules import check_reward_speed
from hindsight_rl.errors import UnknownNameError


def finding(env, name):
    """The one finding of that name, as (level, sentence)."""
    (found,) = [f for f in check_goal_env(env).findings if f.name == name]
    return found.level, found.sentence


def test_good_environments_have_only_ok_findings():
    for env in (Line(), Terminating(), "PointReach-v0", "BitFlipping-v0", lambda: Line(), Docking):
        report = check_goal_env(env)
        assert {f.level for f in report.findings} == {"ok"}, str(report)
        assert report.ok


def test_the_report_is_made_for_a_terminal():
    report = check_goal_env("PointReach-v0")
    text = str(report)
    assert f"The check played {report.n_steps} environment steps." in text
    assert text.startswith("PointReach-v0\n  ok       spaces             observation (4,) float32")
    assert text.endswith("PointReach-v0 is ready for hindsight-rl: errors 0, warnings 0, not seen 0")


class WidelyCopied(Line):
    """compute_reward returns 1 and 0, step 0 and -1, and the observations are float64 in a float32 space."""

    def observe(self):
        return {k: v.astype(np.float64) for k, v in super().observe().items()}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return near(achieved_goal, desired_goal).astype(np.float64)


class RarelyCostly(Costly):
    """A cost that the first steps do not show: the place must be beyond 3.5."""

    max_steps = 100

    def info(self, observation):
        return {**super().info(observation), "cost": float(self.place > 3.5)}


@pytest.mark.parametrize("task", [Costly, RarelyCostly])
def test_two_rewards_minus_a_cost_from_the_info_are_right(task):
    report = check_goal_env(task())
    assert {f.level for f in report.findings} == {"ok"}, str(report)
    assert report.facts.reward_range == (-np.inf, np.inf)
    with HER(task) as model:
        assert model.spec.reward_low == -np.inf


def test_a_widely_copied_mistake_is_found():
    assert not check_goal_env(WidelyCopied()).ok
    level, sentence = finding(WidelyCopied(), "observations")
    assert level == "warning"
    assert_matches(
        "observation at step 0 with seed 1 is float64, but float32 is declared; it is cast. Return float32", sentence
    )
    level, sentence = finding(WidelyCopied(), "reward values")
    assert level == "error"
    assert_matches("step 1 with seed 1 has the reward -1, but compute_reward returns 0", sentence)


def changed(base=Line, **methods):
    return type("Changed", (base,), methods)()


def observing(change):
    return changed(observe=lambda self: change(Line.observe(self)))


@pytest.mark.parametrize(
    ("change", "level", "sentence"),
    [
        (lambda o: {**o, "observation": o["observation"][:1]}, "error", r"step 0 .* shape \(1,\), but \(2,\)"),
        (lambda o: {**o, "observation": o["observation"] * np.nan}, "error", "observation .* not finite"),
        (
            lambda o: {**o, "observation": o["observation"].astype(object)},
            "error",
            "observation .* not an array of numbers",
        ),
        (lambda o: {**o, "observation": o["observation"] + 1000}, "warning", "column 0, outside its bounds"),
    ],
)
def test_observations_that_are_not_as_declared(change, level, sentence):
    found = finding(observing(change), "observations")
    assert found[0] == level
    assert_matches(sentence, found[1])


def test_an_environment_that_was_made_is_closed_after_an_unexpected_error(monkeypatch):
    closed = []
    monkeypatch.setattr("hindsight_rl.envs.check.read_spec", lambda env: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        check_goal_env(lambda: changed(close=lambda self: closed.append(self)))
    assert len(closed) == 1


def assert_matches(pattern, text):
    with pytest.raises(AssertionError, match=pattern):
        raise AssertionError(text)


def test_any_integer_dtype_suits_a_discrete_observation():
    env = Line()
    env.observation_space = spaces.Dict({**env.observation_space.spaces, "observation": spaces.Discrete(3)})
    env.observe = lambda: {**Line.observe(env), "observation": np.int32(2)}
    assert finding(env, "observations")[0] == "ok"


def test_further_keys_of_the_observation_are_named():
    env = observing(lambda o: {**o, "fuel": np.ones(1, np.float32)})
    env.observation_space = spaces.Dict({**env.observation_space.spaces, "fuel": spaces.Box(0, 1, (1,))})
    level, sentence = finding(env, "spaces")
    assert level == "warning"
    assert "Not used: fuel. Append them with observation_keys" in sentence


class Late(Line):
    """The reward and the success of a step are those of the state before it."""

    def step(self, action):
        before = self.observe()
        observation, _, terminated, truncated, _ = super().step(action)
        info = self.info(before)
        return observation, self.reward(before, info), terminated, truncated, info


class Early(Line):
    """The observation of a step is that of the state before it."""

    def step(self, action):
        before = self.observe()
        return before, *super().step(action)[1:]


@pytest.mark.parametrize(
    ("env", "sentence"), [(Late(), "those of the state before the step"), (Early(), "the state after the next step")]
)
def test_a_reward_that_is_off_by_one_is_an_error(env, sentence):
    level, found = finding(env, "reward timing")
    assert level == "error"
    assert sentence in found


class Rim(Line):
    """Beyond 4 an episode ends with a penalty."""

    max_steps = 60

    def step(self, action):
        observation, reward, _, truncated, info = super().step(action)
        falls = abs(self.place) > 4
        return observation, reward - 20 * falls, falls, truncated, info


class Cliff(Rim):
    """No random action reaches a goal."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.ones(np.shape(achieved_goal)[:-1])

    def reward(self, observation, info):
        return -1.0

    def info(self, observation):
        return {}


class DenseRim(Rim):
    """The same with distances as rewards."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.linalg.norm(achieved_goal - desired_goal, axis=-1)

    def reward(self, observation, info):
        return float(self.compute_reward(observation["achieved_goal"], self.goal, info))


@pytest.mark.parametrize(("make", "is_added"), [(Rim, False), (DenseRim, True)])
def test_a_penalty_is_added_to_relabelled_rewards_unless_the_end_of_an_episode_is_counted_anyway(make, is_added):
    report = check_goal_env(make())
    (sentence,) = [each.sentence for each in report.of("ok") if each.name == "reward values"]
    assert ("HER and make_buffer add it" in sentence, "Relabelled rewards lack this part" in sentence) == (
        is_added,
        not is_added,
    )
    assert ("extra_reward" in {each.option for each in report.facts.choices()}) == is_added


@pytest.mark.parametrize(("rewards_of", "bonus"), [(Line, -1), (DenseRim, 10)])
def test_rewards_of_successes_that_compute_reward_leaves_out_are_a_warning(rewards_of, bonus):
    """A bonus, or a second condition of a success: neither is added to the rewards of other goals."""

    def step(self, action):
        seen, reward, *rest = Line.step(self, action)
        return seen, reward + bonus * self.info(seen)["is_success"], *rest

    env = changed(step=step, reward=rewards_of.reward, compute_reward=rewards_of.compute_reward)
    report = check_goal_env(env)
    (sentence,) = [each.sentence for each in report.of("warning") if each.name == "reward values"]
    assert "succeed elsewhere, or lack a bonus. Let step return what compute_reward returns" in sentence
    assert "extra_reward" not in {each.option for each in report.facts.choices()}


def test_a_penalty_of_last_steps_is_no_reward_of_a_later_state():
    assert finding(Cliff(), "reward timing")[0] != "error"
    level, sentence = finding(Cliff(), "reward values")
    assert level == "ok"
    assert "add it to relabelled rewards too" in sentence


def fined(self, observation, info):
    return Line.reward(self, observation, info) - 5 * (self.steps == 3)


@pytest.mark.parametrize(
    ("env", "name", "level", "sentence"),
    [
        (Scalar(), "reward form", "warning", "wrong for a batch"),
        (
            changed(max_steps=30, reward=lambda self, o, info: Line.reward(self, o, info) - 5 * (self.steps == 7)),
            "reward values",
            "ok",
            "step 7 with seed 1 has the reward -6, but compute_reward returns -1; .* differ, by up to 5",
        ),
        (
            changed(
                info=lambda self, o: {**Line.info(self, o), "toll": 0.5, "other": 1.0},
                compute_reward=lambda self, a, d, info: near(a, d) - info["toll"],
            ),
            "info keys",
            "ok",
            r"functions of the environment read toll. .* your own buffer needs info_keys=\('toll',\)",
        ),
        (
            changed(
                reward=lambda self, o, info: -1 - Line.reward(self, o, info),
                compute_reward=lambda self, a, d, info: -1.0 * near(a, d),
            ),
            "reward inputs",
            "error",
            "steps with success have lower rewards than the others",
        ),
        (
            changed(compute_reward=lambda self, a, d, info: -np.ones(a.shape[:-1]), reward=lambda self, o, info: -1.0),
            "reward inputs",
            "error",
            r"returns -1 for \d+ successes, and no less than -1 for the other \d+ steps, .* such as 0 instead of -1",
        ),
        (
            changed(compute_reward=lambda self, a, d, info: -np.ones(a.shape[:-1])),
            "reward inputs",
            "error",
            "so no relabelled goal is a success",
        ),
        (
            changed(
                reward=lambda self, o, info: near(o["achieved_goal"][:1], o["desired_goal"][:1]) - 1.0,
                compute_reward=lambda self, a, d, info: near(a[..., :1], d[..., :1]) - 1.0,
            ),
            "goal dimensions",
            "ok",
            "no reward depends on dimensions 1 of the desired goal",
        ),
        (
            changed(
                __init__=lambda self: Line.__init__(self, shift=20.0),  # the goals lie where the body never gets
                compute_reward=lambda self, a, d, info: near(a, d) - 1.0 if (np.asarray(a) < 15).all() else 1 / 0,
            ),
            "goal dimensions",
            "not seen",
            "compute_reward cannot answer for goals that the environment did not produce",
        ),
        (
            changed(compute_reward=lambda self, a, d, info: -1.0 * np.ones(a.shape[:-1])),
            "goal dimensions",
            "not seen",
            "no reward changed, whichever dimension did",
        ),
        (
            changed(compute_reward=lambda self, a, d, info: near(a, self.goal) - 1.0),
            "reward inputs",
            "error",
            "must use the desired_goal",
        ),
        (
            changed(
                info=lambda self, o: {**Line.info(self, o), "push": np.array([self.place, 1.0])},
                reward=lambda self, o, info: self.compute_reward(o["achieved_goal"], self.goal, info),
                compute_reward=lambda self, a, d, info: near(a, d) - 1.0 - 0.01 * np.abs(info["push"]).sum(-1),
            ),
            "info keys",
            "ok",
            r"functions of the environment read push\[2\]. .* your own buffer needs info_keys=\('push\[2\]',\)",
        ),
        (
            changed(
                info=lambda self, o: {**Line.info(self, o), "late": self.steps > 5},
                reward=lambda self, o, info: self.compute_reward(o["achieved_goal"], self.goal, info),
                compute_reward=lambda self, a, d, info: (near(a, d) & np.asarray(info["late"])) - 1.0,
            ),
            "reward inputs",
            "warning",
            r"compute_reward\(x, x\) is -1 instead of 0 for 5 of 10 achieved goals",
        ),
        (
            changed(
                reward=lambda self, o, info: self.compute_reward(o["achieved_goal"], self.goal, info),
                compute_reward=lambda self, a, d, info: near(a, d) - 1.0 - 0.1 * abs(float(self.goal[0])),
            ),
            "reward inputs",
            "error",
            "after further resets, compute_reward returns other rewards for the same goals",
        ),
        (
            changed(info=lambda self, o: {"won": True}),
            "success",
            "error",
            r"step 1 with seed 1 .* only \['won'\]\. Let step set .*'is_success'\] to True where compute_reward returns 0",
        ),
        (changed(info=lambda self, o: {"success": True}), "success", "warning", "disagree in"),
        (TerminatingOneByOne(), "termination", "warning", "called for each"),
        (
            changed(Terminating, compute_terminated=lambda self, a, d, info: 1 / 0),
            "termination",
            "warning",
            "failed, so it is not used",
        ),
        (
            changed(compute_terminated=lambda self, a, d, info: True),
            "termination",
            "warning",
            "contradicts a step with terminated=False",
        ),
        (
            changed(compute_terminated=lambda self, a, d, info: near(a, d)),
            "termination",
            "warning",
            r"0 of \d+ successes and 0 other steps .* but compute_terminated disagrees",
        ),
        (
            changed(terminates=lambda self, o: self.steps == 3),
            "termination",
            "warning",
            r"0 of \d+ successes and [1-9] other steps ended their episode\. .* to fail early has a higher return",
        ),
        (
            changed(max_steps=1, terminates=lambda self, o: True),  # an ending cuts nothing off
            "termination",
            "ok",
            r"\d+ successes and \d+ other steps ended their episode",
        ),
        (
            changed(max_steps=4, terminates=lambda self, o: self.steps == 4),  # an ending cuts nothing off
            "termination",
            "ok",
            r"\d+ successes and \d+ other steps ended their episode",
        ),
        (
            changed(terminates=lambda self, o: self.steps == 3, reward=fined),
            "termination",
            "ok",
            r"0 of \d+ successes and [1-9] other steps ended their episode$",
        ),
        (
            changed(
                terminates=lambda self, o: self.steps == 3, compute_reward=lambda self, a, d, info: -np.abs(a - d)[..., 0]
            ),
            "termination",
            "ok",
            r"0 of \d+ successes and [1-9] other steps ended their episode$",
        ),
        (
            changed(
                Terminating, terminates=lambda self, o: Terminating.terminates(self, o) or self.steps == 3, reward=fined
            ),
            "termination",
            "ok",
            "relabelled successes do too, and other endings stay",
        ),
        (
            changed(terminates=Terminating.terminates, compute_reward=lambda self, a, d, info: -np.abs(a - d)[..., 0]),
            "termination",
            "ok",
            "`train` and HER find the least reward of a success in their episodes; other buffers need success_reward",
        ),
        (
            changed(terminates=lambda self, o: Terminating.terminates(self, o) and self.steps > 4),
            "termination",
            "warning",
            "not clear which relabelled successes do",
        ),
        (
            changed(terminates=lambda self, o: self.steps == 3 or (Terminating.terminates(self, o) and self.steps > 1)),
            "termination",
            "warning",
            r"[1-9] of \d+ successes and [1-9] other steps ended .* not clear which relabelled successes do",
        ),
        (
            changed(reset=lambda self, *, seed=None, options=None: Line.reset(self, seed=None)),
            "seeded resets",
            "warning",
            r"lead to other values: observation by up to .*self\.np_random",
        ),
        (
            changed(step=lambda self, a: (setattr(self, "goal", self.goal + (self.steps == 4)), Line.step(self, a))[1]),
            "desired goal",
            "warning",
            "changes at step 5 with seed 1",
        ),
        (
            changed(max_steps=None, step=lambda self, a: (*Line.step(self, a)[:3], False, {})),
            "time limit",
            "error",
            "none was found, and an episode did not end within 1,000 steps. Set max_episode_steps",
        ),
    ],
)
def test_a_broken_rule_is_named(env, name, level, sentence):
    if name == "time limit":
        env.max_steps = np.inf
    found = finding(env, name)
    assert found[0] == level, found
    assert_matches(sentence, found[1])


@pytest.mark.parametrize(("base", "level"), [(Terminating, "not seen"), (Line, "error")])
def test_one_reward_for_all_steps_is_enough_only_if_a_function_ends_relabelled_successes(base, level):
    env = changed(
        base,
        terminates=Terminating.terminates,
        reward=lambda self, o, info: -1.0,
        compute_reward=lambda self, a, d, info: -np.ones(a.shape[:-1]),
    )
    assert finding(env, "reward inputs")[0] == level


class Unreported(Terminating):
    """Success is not reported. A step that misses the goal has the reward 0, and a success the reward 100."""

    def info(self, observation):
        return {}

    def reward(self, observation, info):
        return 100 * (1 + super().reward(observation, info))


def test_without_a_reported_success_compute_reward_shows_it():
    findings = {each.name: each for each in check_goal_env(Unreported()).findings}
    n_rewards = findings["reward values"].sentence.split(" of ")[1].split()[0]
    assert findings["reward values"].level == "error"
    assert_matches(f"{n_rewards} of {n_rewards} steps differ, by up to 100", findings["reward values"].sentence)
    assert findings["reward inputs"].level == "ok"
    assert findings["termination"].level == "ok"
    assert_matches(r"^([1-9]) of \1 successes and 0 other steps", findings["termination"].sentence)


def test_the_goals_that_the_reward_was_tried_with_are_counted():
    level, sentence = finding(Line(), "reward inputs")
    achieved, desired, _ = Probe(Line(), read_spec(Line())).random[0].goals()
    n_lower = sum((~near(achieved, goal)).sum() for goal in (desired, np.roll(achieved, 1, axis=0)))
    assert 0 < n_lower < 20
    assert sentence == f"compute_reward(x, x) is higher than the reward of {n_lower} of 20 other goals, and never lower"
    assert level == "ok"


def test_steps_whose_rewards_are_replaced_are_named():
    report = check_goal_env(WidelyCopied(), reward="recompute")
    (found,) = [f for f in report.findings if f.name == "reward values"]
    assert found.level == "ok"
    assert_matches(
        r"step 1 with seed 1 has the reward -1, but compute_reward returns 0; (\d+) of \1 steps differ, by up to 1\. "
        r"The rewards of compute_reward are used",
        found.sentence,
    )


def test_a_time_limit_beyond_the_steps_of_the_check_is_not_seen():
    expected = "200 steps; the longest of 2 episodes had 150; the check ends each at 150"
    assert finding(changed(max_steps=200), "time limit") == ("not seen", expected)


def test_a_goal_that_is_drawn_again_where_it_is_reached_is_a_warning():
    def step(self, action):
        seen, reward, terminated, truncated, info = Line.step(self, action)
        if info["is_success"]:
            self.goal = -self.goal
            seen = self.observe()
        return seen, reward, terminated, truncated, info

    level, sentence = finding(changed(step=step), "desired goal")
    assert level == "warning"
    assert_matches(
        r"changes at step \d+ with seed \d, where it was reached\. Success counts in the last step alone", sentence
    )


def test_goals_that_are_relative_to_the_body_are_refused():
    def observe(self):
        seen = Line.observe(self)
        gap = seen["desired_goal"] - seen["achieved_goal"]
        return {**seen, "achieved_goal": np.zeros_like(gap), "desired_goal": gap}

    level, sentence = finding(changed(observe=observe), "desired goal")
    assert level == "error"
    assert_matches("the achieved goal is the same in all steps: goals are relative to the body", sentence)


def test_a_goal_that_moves_by_itself_beside_an_object_at_rest_is_a_warning():
    def observe(self):
        seen = Line.observe(self)
        return {**seen, "achieved_goal": np.ones(2, np.float32), "desired_goal": self.goal + np.float32(self.steps)}

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return Line.reset(self, seed=seed)

    env = changed(observe=observe, reset=reset, info=lambda self, seen: {"is_success": False}, reward=lambda *_: -1.0)
    level, sentence = finding(env, "desired goal")
    assert level == "warning"
    assert_matches("changes at step 1 with seed 1. Each step keeps its own goal", sentence)


def truncating_at(end, more=0, first_seed=0):
    """A line whose episodes are truncated without a success after so many steps, with odd seeds from one on later."""

    def reset(self, *, seed=None, **options):
        self.end = end + more * (seed is not None and seed >= first_seed and seed % 2)
        return Line.reset(self, seed=seed, **options)

    def step(self, action):
        seen, reward, terminated, _, _ = Line.step(self, action)
        return seen, reward, terminated, self.steps == self.end, {"is_success": False}

    return changed(max_steps=50, reset=reset, step=step, terminates=lambda self, o: False)


def test_a_time_limit_that_no_episode_reaches_is_a_warning():
    level, sentence = finding(truncating_at(20), "time limit")
    assert level == "warning"
    assert_matches("50 steps, but all 8 episodes were truncated after 20 steps. If that is the time limit, set", sentence)


@pytest.mark.parametrize("first_seed", [0, 100])
def test_an_episode_that_is_truncated_early_counts_as_failed(first_seed):
    level, sentence = finding(truncating_at(20, 10, first_seed), "time limit")
    assert level == "ok"
    assert_matches("truncated before it without a success, which counts as a failure: 2", sentence)


def test_an_environment_that_ends_by_itself_needs_no_time_limit():
    level, sentence = finding(changed(max_steps=np.inf, terminates=lambda self, o: self.steps == 12), "time limit")
    assert level == "warning"
    assert_matches("none was found; the longest of 2 episodes had 12 steps", sentence)


@pytest.mark.parametrize(("seeds", "end"), [((), ""), ((2,), "; after 1 of 9 resets, the goal is achieved already")])
def test_goals_that_are_achieved_at_the_reset_are_counted(seeds, end):
    """The seeds of the episodes whose goal is not set are 1, 2, 3 and 101 to 106."""

    def reset(self, *, seed=None, options=None):
        Line.reset(self, seed=seed)
        self.place = float(self.goal[0]) + 2.0 * (seed not in seeds)
        return self.observe(), {}

    level, sentence = finding(changed(reset=reset), "success")
    assert level == "ok"
    assert sentence.endswith(f"with goals set by the attribute goal{end}")


def test_a_goal_that_is_always_the_same_is_named():
    def reset(self, *, seed=None, options=None):
        Line.reset(self, seed=seed)
        self.goal = np.full(2, 2.5, np.float32)
        return self.observe(), {}

    report = check_goal_env(changed(reset=reset))
    assert_matches("warning  desired goal .* is the same after 8 resets", str(report))
    assert_matches("whether one changes .* since each reset has the same desired goal", str(report))


def test_an_unseeded_goal_is_named():
    goals = itertools.count()
    reset = lambda self, *, seed=None, options=None: (Line.reset(self, seed=seed), self.redraw())[1]  # noqa: E731
    redraw = lambda self: (setattr(self, "goal", np.full(2, next(goals), np.float32)), (self.observe(), {}))[1]  # noqa: E731
    level, sentence = finding(changed(reset=reset, redraw=redraw), "seeded resets")
    assert level == "warning"
    assert_matches(r"other values: desired_goal by up to \d+.*self\.np_random", sentence)


@pytest.mark.parametrize(
    ("info_keys", "level", "sentence"),
    [
        (("weight",), "error", "no numeric entry 'weight' at every step. It has: is_success, toll"),
        (("is_success",), "error", "need toll too"),
        (("toll",), "ok", "read toll"),
    ],
)
def test_given_info_keys_are_checked(info_keys, level, sentence):
    env = changed(
        info=lambda self, o: {**Line.info(self, o), "toll": 0.5},
        reward=lambda self, o, info: Line.reward(self, o, info) - info["toll"],
        compute_reward=lambda self, a, d, info: near(a, d) - 1.0 - info["toll"],
    )
    (found,) = [f for f in check_goal_env(env, info_keys=info_keys).findings if f.name == "info keys"]
    assert found.level == level
    assert_matches(sentence, found.sentence)


def test_a_given_time_limit_counts():
    env = changed(
        terminates=lambda self, o: False, step=lambda self, a: (*Line.step(self, a)[:3], False, {"success": True})
    )
    env.max_steps = np.inf
    report = check_goal_env(env, max_episode_steps=7)
    assert "7 steps; the longest of 2 episodes had 7" in str(report)


class Hidden(Line):
    """A wide line with a goal that cannot be set, since no attribute holds it in the form of the observation."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.parts = 90.0, {"goal": self.goal}
        del self.goal
        return self.observe(), {}

    def __getattr__(self, name):
        if name == "goal":
            return self.__dict__["parts"]["goal"]
        raise AttributeError(name)


def test_without_a_success_the_report_says_so():
    report = check_goal_env(Hidden())
    assert [f.name for f in report.of("not seen")] == ["reward timing", "success", "termination", "goal columns"]
    assert_matches("0 successes in .* with random actions, since the goal cannot be set", str(report))
    assert report.facts.terminates_on_success is None
    assert report.ok


@pytest.mark.parametrize(
    ("env", "terminates", "settings"),
    [
        (Line(), False, {}),
        (Terminating(), True, {}),
        (TerminatingOneByOne(), True, {}),
        (changed(terminates=Terminating.terminates), True, {"relabel_terminated": "success"}),
        (changed(compute_terminated=lambda self, a, d, info: near(a, d)), False, {"relabel_terminated": "keep"}),
        (
            changed(
                info=lambda self, o: {**Line.info(self, o), "toll": 0.5},
                reward=lambda self, o, info: Line.reward(self, o, info) - info["toll"],
                compute_reward=lambda self, a, d, info: near(a, d) - 1.0 - info.get("toll", 0.0),
            ),
            False,
            {"info_keys": ("toll",)},
        ),
        (Docking(), True, {"relabel_terminated": "success"}),
        (PushBox(), False, {"categories": ("o0-5=0..5", "g0-1=0..5"), "hidden_observation": (4, 5)}),
        (Distant(), False, {"dtype": "float64"}),
    ],
)
def test_the_facts_decide_settings(env, terminates, settings):
    facts = check_goal_env(env).facts
    assert facts.terminates_on_success is terminates
    assert {choice.option: choice.value for choice in facts.choices()} == settings


def test_goals_too_large_for_float32_are_stored_as_float64():
    """The place moves by less than the spacing of float32, and relabelled rewards still tell near from far."""
    assert make_buffer(Distant(), 100).timeline.rows["desired_goal"].dtype == np.float64
    with HER(
        lambda: gymnasium.wrappers.TimeLimit(Distant(), 10), agent="td3", hidden=(8,), random_steps=30, updates_per_step=0.1
    ) as model:
        batch = model.learn(60).trainer.buffer.sample(500)
    distance = np.linalg.norm(batch.next_achieved_goal - batch.goal, axis=1)
    assert batch.goal.dtype == np.float64
    assert (batch.reward == np.where(distance < 0.5, 0, -1)).all()
    assert 0 < (batch.reward == 0)[batch.is_relabelled].mean() < 1
    assert len(np.unique(batch.goal % 1)) > 20


def with_goal(part):
    """An environment whose observation is this function of the position and the goal."""
    return changed(observe=lambda self: {**Line.observe(self), "observation": part(np.full(2, self.place), self.goal)})


@pytest.mark.parametrize(
    ("env", "level", "sentence"),
    [
        (Line(), "ok", "no column"),
        (
            with_goal(lambda here, goal: np.array([here[0], goal[0] - here[0]], np.float32)),
            "warning",
            "column 1 .*hide it",
        ),
        (with_goal(lambda here, goal: np.float32(goal - here)), "warning", "columns 0, 1 .*Leave them out"),
    ],
)
def test_columns_that_depend_on_the_goal(env, level, sentence):
    found = finding(env, "goal columns")
    assert found[0] == level
    assert_matches(sentence, found[1])


class Bits(gymnasium.Env):
    """Bits that are flipped one at a time. The observation also holds those of the goal."""

    size, max_steps, dtype = 5, 10, np.int8

    def __init__(self):
        goal = spaces.MultiBinary(self.size) if self.dtype == np.int8 else spaces.Box(0, 9, (self.size,), self.dtype)
        seen = spaces.Box(0, 9, (2 * self.size,), np.float32)
        self.observation_space = spaces.Dict({"observation": seen, "achieved_goal": goal, "desired_goal": goal})
        self.action_space = spaces.Discrete(self.size)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.bits, self.wanted = self.np_random.integers(0, 2, (2, self.size)).astype(self.dtype)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        seen = np.concatenate([self.bits, self.wanted]).astype(np.float32)
        return {"observation": seen, "achieved_goal": self.bits.copy(), "desired_goal": self.wanted.copy()}

    def step(self, action):
        self.bits[action] ^= 1
        self.steps += 1
        reward = self.compute_reward(self.bits, self.wanted, {})
        return self.observe(), float(reward), False, self.steps >= self.max_steps, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (np.asarray(achieved_goal) == desired_goal).all(-1) - 1.0


class Digits(Bits):
    """The same with whole numbers."""

    dtype = np.int64


@pytest.mark.parametrize("make", [Bits, Digits])
def test_columns_that_hold_bits_of_the_goal_are_hidden(make):
    with HER(make()) as model:
        assert model.settings.agent_options.hidden_observation == (5, 6, 7, 8, 9)
        assert model.agent.policy_spec.layout.visible["observation"].tolist() == [0, 1, 2, 3, 4]


def test_exact_resets_are_a_fact():
    assert check_goal_env(Line()).facts.exact_resets
    assert not check_goal_env(changed(reset=lambda self, *, seed=None, options=None: Line.reset(self))).facts.exact_resets


def test_the_budget_is_a_number_of_steps():
    counts = []
    for _ in range(2):
        env, steps = Hidden(), []
        env.step = lambda action, env=env, steps=steps: (steps.append(1), Line.step(env, action))[1]
        check_goal_env(env)
        counts.append(len(steps))
    assert counts[0] == counts[1] < 800


def test_a_slow_reward_is_a_warning():
    probe = Probe(Line(), read_spec(Line()))
    assert check_reward_speed(probe, itertools.count(0, 0.004).__next__)[0] == "ok"
    level, sentence = check_reward_speed(probe, itertools.count(0, 0.25).__next__)
    assert level == "warning"
    assert sentence.startswith("compute_reward takes 2.5e+02 ms for a batch of 256 goals")


def test_an_environment_that_fails_rarely_is_played_again():
    failing = iter([False] * 5 + [True] + [False] * 100 + [True])

    def step(self, action):
        if next(failing, False):
            raise RuntimeError("lost contact")
        return Line.step(self, action)

    with pytest.warns(UserWarning, match=r"failed \(RuntimeError: lost contact, .*\)\. The episode is played again"):
        report = check_goal_env(changed(step=step))
    assert report.ok


def test_actions_without_bounds_are_an_error():
    env = Line()
    env.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    assert finding(env, "action bounds")[0] == "error"


def test_actions_that_no_agent_returns_are_an_error():
    env = changed(step=lambda self, action: Line.step(self, action[:1]))
    env.action_space = spaces.Box(np.float32([-1, 2]), np.float32([1, 2]))
    assert finding(env, "action bounds")[1].startswith("dimensions 1 of the action have a single value")
    env = Line()
    env.action_space = spaces.Box(-1, 1, (1,), np.int64)
    level, sentence = finding(env, "action bounds")
    assert level == "error"
    assert sentence.endswith("Declare floats that step rounds, or MultiDiscrete if there are at most 4,096 combinations")


def test_goals_of_too_many_values_are_an_error():
    def observe(self):
        goals = {"achieved_goal": self.place, "desired_goal": self.goal[0]}
        return {**Line.observe(self), **{key: np.int64(100 * value + 2500) for key, value in goals.items()}}

    env, goal = changed(observe=observe, info=lambda self, seen: {"is_success": False}), spaces.Discrete(5000)
    env.observation_space = spaces.Dict({**env.observation_space, "achieved_goal": goal, "desired_goal": goal})
    env.compute_reward = lambda achieved, desired, info: (np.abs(achieved - desired) < 50) - 1.0
    level, sentence = finding(env, "spaces")
    assert level == "error"
    assert sentence.startswith("goals with more than 4096 values are too large to be seen one-hot")


def test_the_bounds_of_each_action_are_named_where_they_differ():
    assert finding(Line(), "action bounds") == ("ok", "-1 to 1")
    env = changed(step=lambda self, action: Line.step(self, action[:1]))
    env.action_space = spaces.Box(np.float32([-1, -180, -1]), np.float32([1, 180, 1]))
    assert finding(env, "action bounds") == ("ok", "-1 to 1, -180 to 180")


@pytest.mark.filterwarnings("ignore:.*played again")
def test_an_environment_that_fails_is_reported_not_raised():
    def step(self, action):
        if self.steps == 4:
            raise RuntimeError("lost contact")
        return Line.step(self, action)

    level, sentence = finding(changed(step=step), "first episodes")
    assert level == "error"
    assert sentence.startswith("Step 4 of an episode with seed 1 failed (RuntimeError: lost contact, in ")
    assert_matches(r"test_check\.py:\d+: raise RuntimeError", sentence)
    assert finding(changed(reset=lambda self, **_: 1 / 0), "first episodes")[0] == "error"
    assert_matches("ZeroDivisionError: division by zero", finding(lambda: 1 / 0, "environment")[1])
    assert "Dict observation space" in finding(lambda: gymnasium.make("CartPole-v1"), "environment")[1]
    assert "Dict observation space" in finding(type("Bare", (gymnasium.Env,), {}), "environment")[1]


class WithoutSeed(Line):
    """The form of Gym before 0.26."""

    def reset(self):
        return super().reset()[0]


@pytest.mark.parametrize(
    "methods",
    [
        {"reset": lambda self, **_: Line.reset(self)[0]},
        {"step": lambda self, action: Line.step(self, action)[:4]},
        {"reset": WithoutSeed.reset},
    ],
)
def test_another_form_of_reset_and_step_is_named(methods):
    message = r"reset\(\*, seed=None, options=None\) returns \(observation, info\), step\(action\) returns \(obs"
    assert_matches(f"(unpack|'seed').*{message}", finding(changed(**methods), "first episodes")[1])


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda self, a, d, info: 1 / 0, r"compute_reward of Changed failed \(ZeroDivisionError"),
        (lambda self, a, d, info: np.nan * near(a, d), "finite"),
        (lambda self, a, d, info: near(a, d) - self.np_random.random(near(a, d).shape), "must not be random"),
    ],
)
def test_a_reward_that_cannot_be_used_is_reported_once(compute, message):
    report = check_goal_env(changed(compute_reward=compute))
    assert [f.name for f in report.of("error")] == ["first episodes"]
    assert_matches(message, str(report))
    assert report.facts is None


def test_an_unknown_id_is_raised():
    with pytest.raises(UnknownNameError):
        check_goal_env("PointReach-v7")


def test_a_given_environment_stays_open_and_keeps_its_random_state():
    env, other = Line(), Line()
    env.reset(seed=3)
    other.reset(seed=3)
    env.close = None  # calling it would fail
    check_goal_env(env)
    assert np.array_equal(env.reset()[0]["observation"], other.reset()[0]["observation"])


def test_a_failing_close_is_a_warning():
    with pytest.warns(UserWarning, match=r"close\(\) of Changed failed \(ZeroDivisionError"):
        assert check_goal_env(lambda: changed(close=lambda self: 1 / 0)).ok


def test_an_episode_longer_than_its_limit_is_an_error():
    class Endless(Line):
        max_episode_steps = 3

        def step(self, action):
            observation, reward, *_, info = super().step(action)
            return observation, reward, False, False, info

    level, sentence = finding(Endless(), "time limit")
    assert level == "error"
    assert sentence.startswith("an episode continued after 3 steps")


@pytest.mark.parametrize(
    ("reward", "compute", "sentence"),
    [
        (
            lambda self, o, info: -1.0,
            lambda self, a, d, info: -np.ones(a.shape[:-1]),
            "compute_reward\\(x, x\\) is -1, as is",
        ),
        (
            lambda self, o, info: float(self.compute_reward(o["achieved_goal"], self.goal, info)),
            lambda self, a, d, info: np.abs(a - d)[..., 0] * 0.1 - 20,
            "compute_reward\\(x, x\\) is -20 for an achieved goal x, but .* for another desired goal",
        ),
    ],
    ids=["never a success", "the wrong sign"],
)
def test_a_reward_that_is_not_highest_for_the_achieved_goal_is_a_warning(reward, compute, sentence):
    env = changed(info=lambda self, o: {"is_success": False}, reward=reward, compute_reward=compute)
    level, found = finding(env, "reward inputs")
    assert level == "warning"
    assert_matches(sentence, found)


class Unsettable(Hidden):
    """Its observation holds the goal, also as a difference and scaled, and columns that equal the achieved goal."""

    def observe(self):
        here, goal = np.full(2, self.place, np.float32), self.goal
        seen = np.concatenate((here[:1], goal, (goal - here)[:1], here[1:], goal[:1] / 50 + 1, [90.0], (here - goal)[1:]))
        return {"observation": np.float32(seen), "achieved_goal": here, "desired_goal": goal.astype(np.float64)}

    def __init__(self):
        super().__init__()
        box = spaces.Box(-200, 200, (8,), np.float32)
        self.observation_space = spaces.Dict({**self.observation_space.spaces, "observation": box})


def test_a_goal_in_the_observation_is_found_by_its_values_where_it_cannot_be_set():
    report = check_goal_env(Unsettable())
    assert [each.value for each in report.facts.choices() if each.option == "hidden_observation"] == [(1, 2, 3, 5, 7)]


def kept_keys(env):
    return [choice.value for choice in check_goal_env(env).facts.choices() if choice.option == "info_keys"]


def test_entries_of_info_that_are_read_are_kept_though_they_change_no_reward_that_was_seen():
    env = changed(
        info=lambda self, o: {**Line.info(self, o), "crash": False},
        compute_reward=lambda self, a, d, info: near(a, d) - 1.0 - 100.0 * info.get("crash", False),
    )
    assert kept_keys(env) == [("crash",)]
    assert check_goal_env(env, info_keys=()).ok


def test_entries_of_info_that_only_the_termination_reads_are_kept():
    env = changed(
        Terminating,
        info=lambda self, o: {**Line.info(self, o), "crash": False},
        compute_terminated=lambda self, a, d, info: near(a, d) | info["crash"],
    )
    assert kept_keys(env) == [("crash",)]


def test_a_success_function_that_disagrees_with_the_info_is_an_error():
    env = changed(compute_success=lambda self, a, d: np.linalg.norm(a - d, axis=-1) < 0.8)
    level, sentence = finding(env, "success")
    assert level == "error"
    assert_matches("compute_success disagrees with the info in [1-9]", sentence)


class Pixels(Line):
    """Line in whole tenths, as pixels are. A goal is reached within `tolerance` of them."""

    tolerance = 4

    def observe(self):
        place, goal = np.full(2, np.round(10 * self.place), np.float32), np.round(10 * self.goal)
        return {"observation": place, "achieved_goal": place.copy(), "desired_goal": goal}

    def info(self, observation):
        return {"is_success": bool(self.reward(observation, {}) == 0)}

    def reward(self, observation, info):
        return float(self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info))

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (np.abs(achieved_goal - desired_goal).max(-1) <= self.tolerance).astype(np.float32) - 1


class Cells(Pixels):
    """Each number is another cell."""

    tolerance = 0


@pytest.mark.parametrize(("env", "has_categories"), [(Pixels(), False), (Cells(), True)])
def test_whole_numbers_are_no_categories_if_goals_beside_the_achieved_one_are_reached(env, has_categories):
    found = {choice.option for choice in check_goal_env(env).facts.choices()}
    assert ("categories" in found) == has_categories


class Written(Line):
    """Resets write the goal into one array, as a simulator has it, and the goal is a view of it."""

    def __init__(self):
        super().__init__()
        self.memory = np.zeros((1, 2), np.float32)
        self.goal = self.memory[0]

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        self.place, self.steps = self.np_random.uniform(-3, 3), 0
        self.memory[:] = self.np_random.uniform(-3, 3)
        return self.observe(), {}


def test_after_the_check_an_environment_chooses_its_goals_as_before():
    env = Written()
    check_goal_env(env)
    assert len({env.reset()[0]["desired_goal"].tobytes() for _ in range(20)}) == 20


def test_a_reward_that_reads_the_success_of_the_step_is_refused():
    env = Line()
    env.compute_reward = lambda achieved, desired, info: np.asarray(info["is_success"], np.float32) - 1
    level, sentence = finding(env, "info keys")
    assert level == "error"
    assert "is_success says whether a step reached its own goal" in sentence


def test_an_observation_without_columns_shows_no_goal():
    env = Line()
    empty = gymnasium.spaces.Box(-1, 1, (0,), np.float32)
    env.observation_space = spaces.Dict({**env.observation_space.spaces, "observation": empty})
    env.observe = lambda: {**Line.observe(env), "observation": np.zeros(0, np.float32)}
    options = {choice.option: choice.value for choice in check_goal_env(env).facts.choices()}
    assert options["observation_keys"] == ("achieved_goal",)

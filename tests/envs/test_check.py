"""Every rule, broken once: the report names it, and nothing is raised."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from line_env import Line, Scalar, Terminating, TerminatingOneByOne, near

from hindsight.envs.check import check_goal_env
from hindsight.errors import UnknownNameError


def finding(env, name):
    """The one finding of that name, as (level, sentence)."""
    (found,) = [f for f in check_goal_env(env).findings if f.name == name]
    return found.level, found.sentence


def test_good_environments_have_only_ok_findings():
    for env in (Line(), Terminating(), "PointReach-v0", "BitFlipping-v0", lambda: Line()):
        report = check_goal_env(env)
        assert {f.level for f in report.findings} == {"ok"}, str(report)
        assert report.ok


def test_the_report_is_made_for_a_terminal():
    text = str(check_goal_env("PointReach-v0"))
    assert text.startswith("PointReach-v0\n  ok       spaces             observation (4,) float32")
    assert text.endswith("PointReach-v0 is ready for hindsight: errors 0, warnings 0")


class WidelyCopied(Line):
    """compute_reward returns 1 and 0, step 0 and -1, and the observations are float64 in a float32 space."""

    def observe(self):
        return {k: v.astype(np.float64) for k, v in super().observe().items()}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return near(achieved_goal, desired_goal).astype(np.float64)


def test_a_widely_copied_mistake_is_caught():
    report = check_goal_env(WidelyCopied())
    assert not report.ok
    assert finding(WidelyCopied(), "observations") == (
        "warning",
        "observation at step 0 of the episode with seed 1 is float64, but float32 is declared. Declare what is "
        "returned; values are cast",
    )
    assert finding(WidelyCopied(), "reward values") == (
        "error",
        "step 1 with seed 1 has the reward -1, but compute_reward returns 0; 20 of 20 steps differ, by up to 1. Let step "
        "return what compute_reward returns",
    )


def changed(base=Line, **methods):
    return type("Changed", (base,), methods)()


def observing(change):
    return changed(observe=lambda self: change(Line.observe(self)))


@pytest.mark.parametrize(
    ("change", "level", "sentence"),
    [
        (
            lambda o: {**o, "observation": o["observation"][:1]},
            "error",
            r"observation at step 0 .* shape \(1,\), but \(2,\)",
        ),
        (lambda o: {**o, "achieved_goal": o["achieved_goal"] * np.nan}, "error", "achieved_goal .* not finite"),
        (lambda o: {**o, "observation": o["observation"] + 1000}, "warning", "outside of its declared bounds"),
        (lambda o: {**o, "observation": o["observation"].astype(np.float16)}, "warning", "is float16, but float32"),
    ],
)
def test_observations_that_are_not_as_declared(change, level, sentence):
    found = finding(observing(change), "observations")
    assert found[0] == level
    assert_matches(sentence, found[1])


def assert_matches(pattern, text):
    with pytest.raises(AssertionError, match=pattern):
        raise AssertionError(text)


def test_any_integer_dtype_suits_a_discrete_observation():
    env = Line()
    env.observation_space = spaces.Dict({**env.observation_space.spaces, "observation": spaces.Discrete(3)})
    env.observe = lambda: {**Line.observe(env), "observation": np.int32(2)}
    assert finding(env, "observations") == ("ok", "as declared")


@pytest.mark.parametrize(
    ("env", "name", "level", "sentence"),
    [
        (Scalar(), "reward form", "warning", "one goal at a time"),
        (
            changed(compute_reward=lambda self, a, d, info: np.nan * near(a, d), reward=lambda *_: 0.0),
            "reward form",
            "error",
            "finite",
        ),
        (
            changed(reward=lambda self, o, info: Line.reward(self, o, info) - 5 * (self.steps == 7)),
            "reward values",
            "warning",
            "step 7 with seed 1 has the reward -6, but compute_reward returns -1; 2 of 20 steps differ, by up to 5",
        ),
        (
            changed(compute_reward=lambda self, a, d, info: near(a, d) - self.np_random.random(near(a, d).shape)),
            "reward inputs",
            "error",
            "on a second call",
        ),
        (
            changed(
                info=lambda self, o: {**Line.info(self, o), "toll": 0.5, "other": 1.0},
                compute_reward=lambda self, a, d, info: near(a, d) - info["toll"],
            ),
            "reward inputs",
            "warning",
            r"reads the info \(toll\)",
        ),
        (
            changed(compute_reward=lambda self, a, d, info: near(a, self.goal) - 1.0),
            "reward inputs",
            "error",
            "must use the desired_goal",
        ),
        (changed(info=lambda self, o: {"won": True}), "success", "error", r"step 1 with seed 1 .* but \['won'\]"),
        (changed(info=lambda self, o: {"success": True}), "success", "warning", "disagree in"),
        (TerminatingOneByOne(), "compute_terminated", "warning", "called for each"),
        (
            changed(Terminating, compute_terminated=lambda self, a, d, info: 1 / 0),
            "compute_terminated",
            "warning",
            "failed, so it is not used",
        ),
        (
            changed(compute_terminated=lambda self, a, d, info: True),
            "compute_terminated",
            "warning",
            "returned True for a step with terminated=False",
        ),
        (
            changed(terminates=lambda self, o: self.steps == 3),
            "compute_terminated",
            "warning",
            "step 3 with seed 1 is terminated",
        ),
        (
            changed(Terminating, terminates=lambda self, o: self.steps == 3),
            "compute_terminated",
            "warning",
            "step 3 with seed 1 has terminated=True, but compute_terminated returns the opposite; 2 of 6 steps differ",
        ),
        (
            changed(reset=lambda self, *, seed=None, options=None: Line.reset(self, seed=None)),
            "seeded resets",
            "warning",
            "lead to other observations, by up to",
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
            "warning",
            "none was",
        ),
    ],
)
def test_a_broken_rule_is_named(env, name, level, sentence):
    if name == "time limit":
        env.max_steps = np.inf
    found = finding(env, name)
    assert found[0] == level
    assert_matches(sentence, found[1])


def test_actions_without_bounds_are_an_error():
    env = Line()
    env.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    assert finding(env, "action bounds")[0] == "error"


def test_an_environment_that_fails_is_reported_not_raised():
    def step(self, action):
        if self.steps == 4:
            raise RuntimeError("lost contact")
        return Line.step(self, action)

    level, sentence = finding(changed(step=step), "episodes")
    assert level == "error"
    assert sentence == "Step 4 of an episode with seed 1 failed (RuntimeError: lost contact)."
    assert finding(changed(reset=lambda self, **_: 1 / 0), "episodes")[0] == "error"
    assert finding(lambda: 1 / 0, "making") == ("error", "ZeroDivisionError: division by zero")
    assert "Dict space" in finding(lambda: gymnasium.make("CartPole-v1"), "spaces")[1]
    assert "Dict space" in finding(type("Bare", (gymnasium.Env,), {}), "spaces")[1]


def test_a_reward_that_fails_is_reported_once():
    report = check_goal_env(changed(compute_reward=lambda self, a, d, info: 1 / 0))
    assert [f.name for f in report.of("error")] == ["reward form"]
    assert "compute_reward of Changed failed for one goal of shape (2,) (ZeroDivisionError" in str(report)


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


def test_an_episode_longer_than_its_limit_is_an_error():
    class Endless(Line):
        max_episode_steps = 3

        def step(self, action):
            observation, reward, *_, info = super().step(action)
            return observation, reward, False, False, info

    level, sentence = finding(Endless(), "episode end")
    assert level == "error"
    assert sentence.startswith("an episode continued after 3 steps")

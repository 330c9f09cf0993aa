"""Resets that are not exact: compared with new environments, and accepted or refused by the check."""

from itertools import islice

import numpy as np
import pytest
from line_env import Line

from hindsight_rl import HER
from hindsight_rl.envs.check import check_goal_env
from hindsight_rl.envs.random_play import random_actions
from hindsight_rl.envs.resets import COMPARED_SEEDS, compare_resets
from hindsight_rl.errors import GoalEnvError, OptionError


class Drifting(Line):
    """A reset adds `drift` times the last action before it, which is between -1 and 1, to the first place.

    First places are uniform in (-3, 3): 1 % of their standard deviation is 0.0173.
    """

    drift, last_action = 0.0, 0.0

    def reset(self, *, seed=None, options=None):
        _, info = super().reset(seed=seed)
        self.place += self.drift * self.last_action
        return self.observe(), info

    def step(self, action):
        self.last_action = float(action[0])
        return super().step(action)


class Little(Drifting):
    drift = 0.01


class Much(Drifting):
    drift = 0.5


class Invisible(Drifting):
    """The first observation does not show what remains of the episode before, as contacts in panda-gym."""

    def reset(self, *, seed=None, options=None):
        self.remains = 0.001 * self.last_action
        return super().reset(seed=seed)

    def step(self, action):
        self.place += self.remains
        return super().step(action)


class Counting(Little):
    made = 0

    def __init__(self):
        super().__init__()
        Counting.made += 1


def resets(env, **options):
    """The finding about resets, as (level, sentence)."""
    report = check_goal_env(env, **options)
    (found,) = [each for each in report.findings if each.name == "seeded resets"]
    return found.level, found.sentence


def test_the_gap_is_that_of_the_column_that_differs_most():
    env = Much()
    last_actions = [next(islice(random_actions(env, seed + 1), env.max_steps - 1, None))[0] for seed in COMPARED_SEEDS]
    compared = compare_resets(env, Much)
    assert compared.gap == pytest.approx(0.5 * np.abs(last_actions).max(), rel=1e-5)
    assert compared.column == "column 0 of observation"
    assert compared.deviation == pytest.approx(6 / 12**0.5, rel=0.3)
    assert not compared.is_similar
    assert compare_resets(Little(), Little).is_similar


def test_the_rounding_of_a_column_that_never_changes_is_no_gap():
    class Constant(Drifting):
        drift = 1e-7

        def reset(self, *, seed=None, options=None):
            super().reset(seed=0)
            self.place = 1.0 + self.drift * self.last_action
            return self.observe(), {}

    assert compare_resets(Constant(), Constant).is_similar
    Constant.drift = 1e-4
    assert not compare_resets(Constant(), Constant).is_similar


def test_the_check_states_the_price_of_new_environments():
    level, sentence = resets(Little)
    assert level == "warning"
    assert "made again for each episode: making it takes " in sentence
    assert "--reset-mode reuse" in sentence
    much = resets(Much)[1]
    assert "--reset-mode reuse" not in much
    assert "first at step 0 in observation, columns 0, 1. The environment is made again" in much


class Shared(Much):
    """All of its kind share one simulator, which the first one that is closed stops."""

    simulator = 0

    def __init__(self):
        super().__init__()
        Shared.simulator = self.number = Shared.simulator + 1

    def reset(self, *, seed=None, options=None):
        if self.number > Shared.simulator:
            raise RuntimeError("not connected")
        return super().reset(seed=seed)

    def close(self):
        Shared.simulator = 0


def test_environments_that_share_a_simulator_are_named():
    level, sentence = resets(Shared)
    assert level == "error"
    assert "With another environment of its kind in the same process it fails" in sentence
    assert "RuntimeError: not connected" in sentence


class Alternating(Line):
    """Each second episode moves a little farther at each step."""

    n_resets = 0

    def reset(self, *, seed=None, options=None):
        self.n_resets += 1
        return super().reset(seed=seed)

    def step(self, action):
        self.place += 0.001 * (self.n_resets % 2)
        return super().step(action)


def test_an_effect_of_each_second_reset_is_found():
    level, sentence = resets(Alternating)
    assert level == "warning"
    assert sentence.startswith(
        "after a reset with the same seed, the same actions lead to other values: observation by up to "
    )
    assert "first at step 1 in observation, columns 0, 1. The environment is made again for each episode" in sentence


class Continuing(Line):
    """An episode starts where the one before ended, if that was at its goal."""

    def reset(self, *, seed=None, options=None):
        end = self.place if vars(self).get("steps") and self.info(self.observe())["is_success"] else None
        super().reset(seed=seed)
        self.place = self.place if end is None else end
        return self.observe(), {}


def test_an_effect_of_a_success_on_the_next_reset_is_found():
    level, sentence = resets(Continuing)
    assert level == "warning"
    assert sentence.startswith("after a success and a reset with the same seed, the same actions lead to other values: obs")
    assert "first at step 0 in observation, columns 0, 1. The environment is made again for each episode" in sentence
    assert "--reset-mode reuse" not in sentence
    assert not check_goal_env(Continuing).facts.exact_resets
    level, sentence = resets(Continuing, reset_mode="reuse")
    assert level == "error"
    assert sentence.startswith("reset_mode='reuse' expects the first observations of a new environment")


def test_random_numbers_that_ignore_the_seed_differ_between_new_environments():
    class Global(Line):
        """Its places come from a generator that reset does not seed, as that of the module np.random."""

        rng = np.random.default_rng(0)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.place = self.rng.uniform(-3, 3)
            return self.observe(), {}

    level, sentence = resets(Global)
    assert level == "warning"
    assert "two new ones with the same seed differ too. Draw random numbers with self.np_random, not with np" in sentence
    assert "differ too" not in resets(Invisible)[1]


def test_reuse_is_accepted_for_a_little_gap_and_refused_for_a_large_one():
    level, sentence = resets(Little, reset_mode="reuse")
    assert level == "warning"
    assert "differs from that of a new environment by 0.00" in sentence
    assert "the same bytes are not promised" in sentence
    level, sentence = resets(Much, reset_mode="reuse")
    assert level == "error"
    assert "expects the first observations of a new environment within 1% of the standard deviation" in sentence
    assert "in column 0 of observation, whose standard deviation over resets is " in sentence
    assert "the first observation equals that of a new environment" in resets(Invisible, reset_mode="reuse")[1]
    assert resets(Line, reset_mode="reuse")[0] == "ok"


def test_steps_in_the_compared_environments_are_counted():
    steps = {mode: check_goal_env(Little, reset_mode=mode).n_steps for mode in ("exact", "reuse")}
    assert steps["reuse"] - steps["exact"] == 2 * (10 + 10)  # two seeds more: 10 steps end an episode of either environment


@pytest.mark.parametrize(("mode", "made_while_training"), [("exact", 3), ("reuse", 0)])
def test_a_run_that_reuses_makes_no_environment_for_an_episode(mode, made_while_training):
    with HER(Counting, reset_mode=mode, random_steps=1_000, structure="none") as model:
        assert model.settings.rollout.remake_environment is (True if mode == "exact" else None)
        trainer, before = model.trainer, Counting.made
        for _ in range(3):
            trainer.learn_from_next_job()
        assert Counting.made - before == made_while_training


def test_a_run_that_may_not_reuse_does_not_begin():
    with pytest.raises(GoalEnvError, match="Leave out reset_mode"):
        HER(Much, reset_mode="reuse")
    with pytest.raises(OptionError, match="Leave out remake_environment"):
        HER(Little, reset_mode="reuse", remake_environment=True)

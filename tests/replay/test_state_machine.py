"""A state machine: after any sequence of calls, a buffer holds the same episodes as a list."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from test_timeline import place_slowly
from tiny import compute_reward, make_buffer, make_episode, place, seen

from hindsight_rl.errors import EpisodeTooLongError, NonFiniteError, NothingToSampleError

N_ENVS = 3
flags = st.lists(st.booleans(), min_size=N_ENVS, max_size=N_ENVS)
rarely = st.integers(0, 4).map(lambda x: x == 0)


class Environment:
    """Walks through episodes with the observations (number, t). resets: its next step is the reset of NEXT_STEP."""

    def __init__(self, number):
        self.number, self.t, self.resets, self.path = number, 0, False, []


class Machine(RuleBasedStateMachine):
    """The buffer beside its model: `finished`, a list of (path, terminated), and the open paths of the environments.

    A path is the list of what was seen, [(number, t), ...].
    """

    @initialize(capacity=st.integers(3, 12), episode_length=st.none() | st.integers(1, 5), skips=st.booleans())
    def start(self, capacity, episode_length, skips):
        self.options = {"capacity": capacity, "episode_length": episode_length, "n_envs": N_ENVS}
        self.options["autoreset"] = "next_step" if skips else "disabled"
        self.buffer, self.finished, self.count = make_buffer(**self.options), [], N_ENVS
        self.environments = [Environment(i) for i in range(N_ENVS)]

    def new_number(self):
        self.count += 1
        return self.count

    def finish(self, environment, terminated):
        if len(environment.path) > 1:
            self.finished.append((environment.path, terminated))
        environment.path = []

    @rule(terminated=flags, truncated=flags, slips=st.lists(rarely, min_size=N_ENVS, max_size=N_ENVS))
    def add(self, terminated, truncated, slips):
        """One step of all environments: each may end, and may have been reset without a report."""
        before, after, reward, ends = [], [], [], []
        for i, environment in enumerate(self.environments):
            before.append((environment.number, environment.t))
            if environment.resets:
                after.append((self.new_number(), 0))
                reward.append(0.0)
                ends.append((False, False))
            else:
                if slips[i]:
                    before[i] = (self.new_number(), 0)
                after.append((before[i][0], before[i][1] + 1))
                reward.append(-1.0)
                ends.append((terminated[i], truncated[i]))
        goes_on = [e.path and e.path[-1] == now for e, now in zip(self.environments, before, strict=True)]
        longest = max([1, *(len(e.path) for e, goes in zip(self.environments, goes_on, strict=True) if goes)])
        call = self.call(before, after, reward, ends)
        if longest > self.options["capacity"]:
            with pytest.raises(EpisodeTooLongError):
                call()
            self.end_open_episodes()
            return
        call()
        self.follow(before, after, ends, goes_on)

    def call(self, before, after, reward, ends):
        shown = [[seen(*each) for each in part] for part in (before, after)]
        stacked = [{key: np.stack([each[key] for each in part]) for key in part[0]} for part in shown]
        action = np.array([[t] for _, t in before], np.float32)
        terminated, truncated = np.array(ends).T
        return lambda: self.buffer.add(stacked[0], action, np.array(reward), stacked[1], terminated, truncated, {})

    def follow(self, before, after, ends, goes_on):
        """Do the same with the model: unreported resets first, then the ends, in the order of the environments."""
        for environment, goes in zip(self.environments, goes_on, strict=True):
            if not goes:
                self.finish(environment, terminated=False)
        for i, environment in enumerate(self.environments):
            if environment.resets:
                environment.resets, environment.path = False, []
            else:
                environment.path = [*(environment.path or [before[i]]), after[i]]
                if any(ends[i]):
                    self.finish(environment, ends[i][0])
                    environment.resets = self.options["autoreset"] == "next_step"
                    if not environment.resets:
                        after[i] = (self.new_number(), 0)
            environment.number, environment.t = after[i]

    @rule(steps=st.integers(1, 12), terminated=st.booleans())
    def add_episode(self, steps, terminated):
        steps, number = min(steps, self.options["capacity"]), self.new_number()
        self.buffer.add_episode(make_episode(number, steps, terminated))
        self.finished.append(([(number, t) for t in range(steps + 1)], terminated))

    @rule()
    def end_open_episodes(self):
        self.buffer.end_open_episodes()
        for environment in self.environments:
            self.finish(environment, terminated=False)
            environment.number, environment.t, environment.resets = self.new_number(), 0, False

    @rule()
    def refuse(self):
        """A step with NaN changes nothing. Steps that are skipped as resets may hold anything."""
        real = [i for i, environment in enumerate(self.environments) if not environment.resets]
        if real:
            before = [(environment.number, environment.t) for environment in self.environments]
            reward = np.where(np.arange(N_ENVS) == real[0], np.nan, -1.0)
            with pytest.raises(NonFiniteError):
                self.call(before, before, reward, [(True, False)] * N_ENVS)()

    @rule()
    def save_and_load(self):
        arrays, data = self.buffer.state_dict()
        self.buffer = make_buffer(**self.options)
        self.buffer.add_episode(make_episode(999, 3))
        self.buffer.load_state_dict({name: array.copy() for name, array in arrays.items()}, data)

    def held(self):
        lengths = [len(path) - 1 for path, _ in self.finished]
        placed = place_slowly(len(self.buffer.timeline.rows), self.options["capacity"], lengths)
        return {start: self.finished[number] for start, (number, _) in placed.items()}

    @invariant()
    @precondition(lambda self: hasattr(self, "buffer"))
    def the_ring_holds_the_newest_episodes(self):
        held, rows = self.held(), self.buffer.timeline.rows
        assert self.buffer.num_episodes == len(held)
        assert len(self.buffer) == sum(len(path) - 1 for path, _ in held.values()) == np.count_nonzero(rows["steps_left"])
        for start, (path, terminated) in held.items():
            mine = rows[start : start + len(path)]
            assert mine["observation"].tolist() == [list(each) for each in path]
            assert mine["achieved_goal"][:, 0].tolist() == [place(*each) for each in path]
            assert mine["steps_left"].tolist() == list(range(len(path)))[::-1]
            assert mine["terminated"].tolist() == [False] * (len(path) - 2) + [terminated, False]

    @rule()
    def sample(self):
        if not self.finished:
            with pytest.raises(NothingToSampleError):
                self.buffer.sample(4)
            return
        held, batch = self.held(), self.buffer.sample(40)
        for i, row in enumerate(batch.row.tolist()):
            start = max(s for s in held if s <= row)
            path, t = held[start][0], row - start
            assert batch.observation[i].tolist() == list(path[t])
            assert batch.next_observation[i].tolist() == list(path[t + 1])
            if batch.is_relabelled[i]:
                assert batch.goal[i, 0] in [place(*each) for each in path[t + 1 :]]
                assert batch.reward[i] == compute_reward(batch.next_achieved_goal[i : i + 1], batch.goal[i : i + 1], {})[0]


TestMachine = pytest.mark.filterwarnings("ignore:.*closed as truncated after 1 step")(Machine.TestCase)
TestMachine.settings = settings(max_examples=30, stateful_step_count=40, deadline=None, derandomize=True)

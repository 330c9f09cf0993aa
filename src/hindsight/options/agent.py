"""Every agent's options, one line each: the command line, the recipes and the documents are made from them. No torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..errors import OptionError

GoalFeatures = Literal["none", "relative", "agreement"]
ErrorName = Literal["huber", "squared"]


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """What all agents share. Raises OptionError for a value out of range."""

    hidden: tuple[int, ...] = (256, 256)  # sizes of the hidden layers of every network
    learning_rate: float = 1e-3  # of Adam, for the critics and, unless told otherwise, for the actor
    discount: float = 0.98  # what a reward is worth one step later
    tau: float = 0.005  # share of the online weights that the targets take over when they move
    target_period: int = 1  # the targets move once in so many policy updates; with tau 1 that is a copy
    policy_ema: float = 1.0  # share of the policy that its running mean, evaluated and kept, takes over per update
    critic_layer_norm: bool = False  # LayerNorm without scale or shift before each ReLU of the critics
    clip_targets: bool = True  # hold targets within the returns that the task's reward range can produce
    gradient_clip: float | None = None  # largest norm of a network's gradient; no limit when None
    random_eps: float = 0.2  # share of the steps that take a uniformly random action
    random_action_repeat: int = (
        1  # a random action is held for 1 to so many steps: where bodies have inertia, it leads further
    )
    exploration_decay: float = 1.0  # share of the random actions and the noise that is left from exploration_decay_start on
    exploration_decay_start: int = 0  # environment steps after which exploration is less
    normalize: bool = True  # observations and goals by their running mean and standard deviation
    normalizer_clip: float = 5.0  # normalised values are held within plus and minus this
    normalizer_eps: float = 1e-2  # smallest standard deviation that a value is divided by
    observe_achieved_goal: bool = False  # networks see achieved_goal besides observation and goal
    goal_features: GoalFeatures = "none"  # networks also see goal - achieved_goal, or where the two agree
    hidden_observation: tuple[int, ...] = ()  # with "relative": columns that networks do not see, for they say where
    hidden_goal: tuple[int, ...] = ()  # the same of the goals; they see the differences
    column_differences: tuple[str, ...] = ()  # networks also see one column of the observation less another, as in 6-0
    image_channels: tuple[int, ...] = (16, 32, 32)  # of the convolutions that images go through; each halves the augmented
    device: Literal["auto", "cpu", "cuda"] = "auto"  # where updates run; auto takes a GPU if there is one

    def __post_init__(self) -> None:
        for name in ("hidden_observation", "hidden_goal"):
            object.__setattr__(self, name, _as_tuple(getattr(self, name)))
            self._require(name, lambda columns: all(map(_is_index, columns)), "columns, counted from 0")
        object.__setattr__(self, "column_differences", _as_tuple(self.column_differences))
        for name in ("hidden", "image_channels"):
            object.__setattr__(self, name, _as_tuple(getattr(self, name)))
            self._require(name, lambda sizes: all(map(_is_count, sizes)), "sizes of at least 1, such as 256 256")
        for name in ("learning_rate", "normalizer_eps"):
            self._require(name, _is_positive, "a number above 0")
        self._require("gradient_clip", lambda x: x is None or _is_positive(x), "a number above 0, or None")
        self._require("discount", lambda x: 0 < x < 1, "a number between 0 and 1, both excluded")
        self._require("policy_ema", lambda x: 0 < x <= 1, "a number above 0, at most 1")
        self._require("tau", lambda x: 0 < x <= 1, "a number above 0, at most 1")
        self._require("random_action_repeat", _is_count, "a whole number of at least 1")
        self._require("target_period", _is_count, "a whole number of at least 1")
        for name in ("random_eps", "exploration_decay"):
            self._require(name, _is_share, "a share from 0 to 1")
        self._require("exploration_decay_start", _is_index, "a whole number of at least 0")
        if (self.exploration_decay < 1) != (self.exploration_decay_start > 0):
            raise OptionError(
                f"exploration_decay is {self.exploration_decay} and exploration_decay_start {self.exploration_decay_start}, but a share below 1 "
                f"and a number of steps above 0 belong together: give both or neither"
            )
        self._require("normalizer_clip", lambda x: 1 <= x < math.inf, "a number of at least 1")
        for name in ("critic_layer_norm", "clip_targets", "normalize", "observe_achieved_goal"):
            self._require(name, lambda x: isinstance(x, bool), "true or false")
        self._require("goal_features", lambda x: x in get_args(GoalFeatures), "'none', 'relative' or 'agreement'")
        self._require("device", lambda x: x in ("auto", "cpu", "cuda"), "'auto', 'cpu' or 'cuda'")

    def _require(self, name: str, is_good: Callable[[Any], bool], wanted: str) -> None:
        value = getattr(self, name)
        try:
            good = is_good(value)
        except TypeError:
            good = False
        if not good:
            raise OptionError(f"{name} is {value!r}, but must be {wanted}")


@dataclass(frozen=True, kw_only=True)
class ChoiceOptions(AgentOptions):
    """What the agents for discrete actions share."""

    random_eps: float = 0.1  # share of the steps that take a uniformly random action, from eps_steps on
    initial_eps: float = 1.0  # the same share at the first step; it falls in a straight line
    eps_steps: int = 0  # environment steps until random_eps is reached; from the start when 0
    double: bool = True  # the online network chooses the next action, the target network values it

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("initial_eps", _is_share, "a share from 0 to 1")
        self._require("eps_steps", _is_index, "a whole number of at least 0")
        self._require("double", lambda x: isinstance(x, bool), "true or false")

    def eps_at(self, env_steps: int) -> float:
        """The share of random actions after so many environment steps."""
        left = max(0.0, 1.0 - env_steps / self.eps_steps) if self.eps_steps else 0.0
        return self.random_eps + left * (self.initial_eps - self.random_eps)


@dataclass(frozen=True, kw_only=True)
class DQNOptions(ChoiceOptions):
    """Deep Q-learning (Mnih et al. 2015)."""

    dueling: bool = False  # the last layer gives a state's value and each action's advantage (Wang et al. 2016)
    critic_error: ErrorName = "huber"  # what is minimised: squared, or squared up to 1 and linear beyond (huber)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("dueling", lambda x: isinstance(x, bool), "true or false")
        self._require("critic_error", lambda x: x in get_args(ErrorName), "'huber' or 'squared'")


@dataclass(frozen=True, kw_only=True)
class QRDQNOptions(ChoiceOptions):
    """Quantile regression DQN (Dabney et al. 2018)."""

    double: bool = False  # the online network chooses the next action, the target network values it
    n_quantiles: int = 50  # how many quantiles of each action's return are learnt

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("n_quantiles", _is_count, "a whole number of at least 1")


@dataclass(frozen=True, kw_only=True)
class ActorCriticOptions(AgentOptions):
    """What the agents for continuous actions share."""

    actor_learning_rate: float | None = None  # of Adam, for the actor; the same as learning_rate when None
    n_critics: int = 2  # how many critics are learnt
    n_target_critics: int | None = None  # the target uses so many critics drawn at random; all when None
    actor_layer_norm: bool = False  # LayerNorm without scale or shift before each ReLU of the actor
    action_l2: float = 0.1  # weight of the mean squared action in the actor's loss; keeps it off the bounds
    noise: float = 0.1  # standard deviation of the exploration noise, in half widths of the action range
    subgoals: tuple[
        str, ...
    ] = ()  # goals on the way, as in "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "subgoals", _as_tuple(self.subgoals))
        self._require("actor_learning_rate", lambda x: x is None or _is_positive(x), "a number above 0, or None")
        self._require("n_critics", _is_count, "a whole number of at least 1")
        self._require(
            "n_target_critics",
            lambda n: n is None or (_is_count(n) and n <= self.n_critics),
            f"a whole number from 1 to n_critics = {self.n_critics}, or None",
        )
        self._require("actor_layer_norm", lambda x: isinstance(x, bool), "true or false")
        for name in ("action_l2", "noise"):
            self._require(name, lambda x: 0 <= x < math.inf, "a number of at least 0")


@dataclass(frozen=True, kw_only=True)
class DDPGOptions(ActorCriticOptions):
    """Deep deterministic policy gradient (Lillicrap et al. 2016), with one critic."""

    n_critics: int = 1  # how many critics are learnt


@dataclass(frozen=True, kw_only=True)
class TD3Options(ActorCriticOptions):
    """Twin delayed DDPG (Fujimoto et al. 2018)."""

    policy_period: int = 2  # critic updates per actor update
    target_noise: float = 0.2  # standard deviation of the noise on the target's action, in half widths of its range
    target_noise_clip: float = 0.5  # largest noise on the target's action

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("policy_period", _is_count, "a whole number of at least 1")
        for name in ("target_noise", "target_noise_clip"):
            self._require(name, lambda x: 0 <= x < math.inf, "a number of at least 0")


@dataclass(frozen=True, kw_only=True)
class SACOptions(ActorCriticOptions):
    """Soft actor-critic (Haarnoja et al. 2018). It explores by sampling its policy."""

    action_l2: float = 0.0  # weight of the mean squared action in the actor's loss; keeps it off the bounds
    random_eps: float = 0.0  # share of the steps that take a uniformly random action
    noise: float = 0.0  # standard deviation of the exploration noise, in half widths of the action range
    entropy_coefficient: float = 1.0  # what entropy is worth in rewards, at the start
    entropy_learning_rate: float | None = None  # of Adam, for the coefficient; learning_rate when None, 0 holds it
    target_entropy: float | None = None  # entropy that the coefficient steers to; minus the action's size when None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("entropy_coefficient", _is_positive, "a number above 0")
        self._require("entropy_learning_rate", lambda x: x is None or 0 <= x < math.inf, "a number of at least 0, or None")
        self._require("target_entropy", lambda x: x is None or math.isfinite(x), "a finite number, or None")


@dataclass(frozen=True, kw_only=True)
class TQCOptions(SACOptions):
    """Truncated quantile critics (Kuznetsov et al. 2020), on top of SAC."""

    n_quantiles: int = 25  # how many quantiles of the return each critic learns
    top_quantiles_to_drop_per_net: int = 2  # so many of the largest, times the critics, are left out of the target

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("n_quantiles", _is_count, "a whole number of at least 1")
        self._require(
            "top_quantiles_to_drop_per_net",
            lambda n: _is_index(n) and n < self.n_quantiles,
            f"a whole number from 0 to less than n_quantiles = {self.n_quantiles}",
        )


AGENT_OPTIONS: dict[str, type[AgentOptions]] = {
    "dqn": DQNOptions,
    "qrdqn": QRDQNOptions,
    "ddpg": DDPGOptions,
    "td3": TD3Options,
    "sac": SACOptions,
    "tqc": TQCOptions,
}
DISCRETE_AGENTS = tuple(name for name, options in AGENT_OPTIONS.items() if issubclass(options, ChoiceOptions))
CONTINUOUS_AGENTS = tuple(name for name, options in AGENT_OPTIONS.items() if issubclass(options, ActorCriticOptions))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_positive(value: Any) -> bool:
    return bool(0 < value < math.inf)


def _is_share(value: Any) -> bool:
    return bool(0 <= value <= 1)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value

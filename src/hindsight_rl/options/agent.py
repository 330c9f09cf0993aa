"""The options of every agent. Nothing here imports torch."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from annotated_types import Ge, Le, MaxLen
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, model_validator

from ..errors import OptionError
from .record import Columns, Fraction, OptionRecord, PositiveSteps, Rate, Steps, Texts

MOST_LAYERS = 16  # of each kind; deeper networks need skip connections, which these do not have
# Two of the widest layers have 64 MB of weights, several times in a network. Large image networks have 512 channels.
LayerSizes = Annotated[tuple[Annotated[int, Ge(1), Le(4_096)], ...], MaxLen(MOST_LAYERS)]
Channels = Annotated[tuple[Annotated[int, Ge(1), Le(1_024)], ...], MaxLen(MOST_LAYERS)]
Critics = Annotated[int, Ge(1), Le(100)]  # each is two networks; published ensembles have 10
Quantiles = Annotated[int, Ge(1), Le(1_000)]  # the loss compares each with each; published agents have 25 to 200
GoalFeatures = Literal["none", "relative", "agreement"]
PolicyKind = Literal["deterministic", "squashed_gaussian", "discrete"]


class NetworkOptions(OptionRecord, title="Networks"):
    """Sizes and layers of the networks, and where they run."""

    hidden: LayerSizes = Field((256, 256), description="sizes of the hidden layers of every network")
    critic_layer_norm: bool = Field(False, description="LayerNorm without scale and shift before each ReLU of the critics")
    image_channels: Channels = Field((16, 32, 32), description="channels of the convolutions for image observations")
    device: Literal["auto", "cpu", "cuda"] = Field("cpu", description="where updates run; auto: a GPU if there is one")


class UpdateOptions(OptionRecord, title="Updates"):
    """The temporal-difference update. Rewards and values are in units of the task: a success is 0, a failure -1."""

    learning_rate: PositiveFloat = Field(1e-3, description="learning rate of Adam")
    discount: float = Field(0.98, gt=0, lt=1, description="discount factor (gamma) per environment step")
    tau: Rate = Field(0.005, description="Polyak rate of the target networks; 1 copies the online networks")
    target_period: PositiveSteps = Field(1, description="policy updates between two updates of the target networks")
    policy_ema: Rate = Field(1.0, description="EMA rate of the evaluated policy per update; 1 disables it")
    clip_targets: bool = Field(
        True, description="clip targets to the returns that two rewards make possible: -1/(1 - discount) to 0"
    )
    gradient_clip: PositiveFloat | None = Field(None, description="largest norm of a network's gradient; None: no limit")


class ExplorationOptions(OptionRecord, title="Exploration"):
    """Actions that differ from the policy's."""

    random_eps: Fraction = Field(0.2, description="probability of a uniformly random action")
    random_action_repeat: PositiveSteps = Field(1, description="each random action is repeated for 1 to this many steps")
    exploration_decay: Fraction = Field(1.0, description="factor on random_eps and noise from exploration_decay_start on")
    exploration_decay_start: Steps = Field(0, description="environment steps until exploration decays")

    @model_validator(mode="after")
    def _decay_has_a_start(self) -> Self:
        if (self.exploration_decay < 1) != (self.exploration_decay_start > 0):
            raise OptionError(
                f"`exploration_decay` below 1 and `exploration_decay_start` above 0 need each other, got "
                f"{self.exploration_decay} and {self.exploration_decay_start}. Give both or neither."
            )
        return self


class InputOptions(OptionRecord, title="Inputs of the networks"):
    """What the networks see of an observation."""

    normalize: bool = Field(True, description="normalize observations and goals by their running mean and deviation")
    normalizer_clip: float = Field(5.0, ge=1, description="clip normalized values to plus and minus this")
    normalizer_eps: PositiveFloat = Field(
        1e-2,
        description="smallest deviation that values are divided by, or a tenth of that of the goals if less",
    )
    observe_achieved_goal: bool = Field(False, description="networks see achieved_goal besides observation and goal")
    goal_features: GoalFeatures = Field("none", description="also input: goal - achieved_goal, or equal entries")
    hidden_observation: Columns = Field((), description="observation columns hidden from networks")
    hidden_goal: Columns = Field((), description="goal columns hidden from the networks")
    unused_goal: Columns = Field(
        (), description="goal columns without effect on rewards: networks see the achieved goal there"
    )
    column_differences: Texts = Field(
        (), description="differences of columns as inputs, as in 6-0, or 6+0.5-2*o0 if they have different units"
    )
    rotations: Texts = Field((), description="columns of relative goals that are a quaternion w, x, y, z, as in 3,4,5,6")
    categories: Texts = Field((), description="columns whose whole numbers are categories, as in o0-3=0..5 g0-1=0..5")


class WaypointOptions(OptionRecord, title="Waypoints"):
    """Waypoints on the path to a far goal."""

    n_waypoints: Annotated[int, Ge(0), Le(1_000)] = Field(  # the plan compares each with each
        0, description="visited positions among which the path to a far goal is planned; 0: no path is planned"
    )
    exploration_episodes: Fraction = Field(
        0.5,
        description="with n_waypoints or plan_states: fraction of training episodes that explore rarely visited states",
    )


class SubgoalOptions(OptionRecord, title="Subgoals"):
    """Subgoals of relay HER (Luo et al. 2023)."""

    subgoals: Texts = Field(
        (),
        description='subgoals, as in "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15"; with '
        'several objects, also the dimensions of each, as in "dimensions=0,1,2 placed=0.05"; of an object with an angle, '
        'those of its position, as in "dimensions=0,1"',
    )


class AgentOptions(SubgoalOptions, WaypointOptions, InputOptions, ExplorationOptions, UpdateOptions, NetworkOptions):
    """Options of every agent.

    policy_kind: the meaning of the policy's last layer: the action; mean and log standard deviation; or one value per
        action. Continuous actions are those before tanh.
    """

    policy_kind: ClassVar[PolicyKind] = "deterministic"

    def eps_at(self, env_steps: int) -> float:
        """Return the probability of a random action after `env_steps` environment steps."""
        return self.random_eps


class ChoiceOptions(AgentOptions, title="Discrete actions"):
    """Options of the agents for discrete actions."""

    policy_kind = "discrete"

    plan_states: bool = Field(
        False,
        description="act by value iteration over states where it leads to the goal: visited ones, once at least half of "
        "the steps lead to states of earlier episodes, and those that learned rules predict",
    )
    random_eps: Fraction = 0.1
    initial_eps: Fraction = Field(1.0, description="random_eps at the first step; it decreases linearly")
    eps_steps: Steps = Field(0, description="environment steps until random_eps is reached; 0: from the start")
    double: bool = Field(True, description="the online network selects the next action, the target network evaluates it")

    def eps_at(self, env_steps: int) -> float:
        """Return the probability of a random action after `env_steps` environment steps."""
        left = max(0.0, 1.0 - env_steps / self.eps_steps) if self.eps_steps else 0.0
        return self.random_eps + left * (self.initial_eps - self.random_eps)


class DQNOptions(ChoiceOptions, title="DQN"):
    """Deep Q-learning (Mnih et al. 2015)."""

    dueling: bool = Field(False, description="separate streams for state value and advantages (Wang et al. 2016)")
    critic_error: Literal["huber", "squared"] = Field(
        "huber", description="loss on the TD error: squared, or huber (linear beyond 1, in units of the task)"
    )


class QRDQNOptions(ChoiceOptions, title="QR-DQN"):
    """Quantile regression DQN (Dabney et al. 2018)."""

    double: bool = False
    n_quantiles: Quantiles = Field(50, description="quantiles of the return per action")


class NoiseOptions(OptionRecord, title="Exploration"):
    """Exploration noise of the agents for continuous actions."""

    noise: NonNegativeFloat = Field(0.1, description="standard deviation of exploration noise, in half action ranges")


class CloningOptions(OptionRecord, title="Demonstrations"):
    """Behaviour cloning of demonstrations (Nair et al. 2018)."""

    bc_weight: NonNegativeFloat = Field(
        1.0, description="weight of the squared distance to demonstrated actions, where failure costs 1 per step"
    )
    q_filter: bool = Field(True, description="clone only actions that the critics value more than the policy's")


class ActorCriticOptions(CloningOptions, NoiseOptions, AgentOptions, title="Actor and critics"):
    """Options of the agents for continuous actions."""

    actor_learning_rate: PositiveFloat | None = Field(None, description="learning rate of the actor; None: learning_rate")
    n_critics: Critics = Field(2, description="number of critics")
    n_target_critics: Critics | None = Field(None, description="critics, chosen at random, in the target; None: all")
    action_scale: Rate = Field(1.0, description="fraction of the action range that is used, about its middle")
    actor_layer_norm: bool = Field(False, description="LayerNorm without scale and shift before each ReLU of the actor")
    action_l2: NonNegativeFloat = Field(
        0.1, description="weight of the mean squared action in the actor's loss, where failure costs 1 per step"
    )

    @model_validator(mode="after")
    def _enough_critics(self) -> Self:
        if self.n_target_critics is not None and self.n_target_critics > self.n_critics:
            raise OptionError(
                f"`n_target_critics` must be at most n_critics = {self.n_critics}, got {self.n_target_critics}."
            )
        return self


class DDPGOptions(ActorCriticOptions, title="DDPG"):
    """Deep deterministic policy gradient (Lillicrap et al. 2016), with one critic."""

    n_critics: Critics = 1


class TD3Options(ActorCriticOptions, title="TD3"):
    """Twin delayed DDPG (Fujimoto et al. 2018)."""

    # so many batches are sampled together
    policy_period: int = Field(2, ge=1, le=100, description="critic updates per actor update")
    target_noise: NonNegativeFloat = Field(0.2, description="standard deviation of noise on the target's action")
    target_noise_clip: NonNegativeFloat = Field(0.5, description="largest noise on the target's action")


class SACOptions(ActorCriticOptions, title="SAC"):
    """Soft actor-critic (Haarnoja et al. 2018). It explores by sampling from its policy."""

    policy_kind = "squashed_gaussian"

    action_l2: NonNegativeFloat = 0.0
    random_eps: Fraction = 0.0
    noise: NonNegativeFloat = 0.0
    entropy_coefficient: PositiveFloat = Field(
        1.0, description="initial weight of the entropy in the return (alpha), where failure costs 1 per step"
    )
    entropy_learning_rate: NonNegativeFloat | None = Field(
        None, description="its learning rate; None: learning_rate; 0: none"
    )
    target_entropy: float | None = Field(None, description="entropy to keep; None: minus the number of action entries")


class TQCOptions(SACOptions, title="TQC"):
    """Truncated quantile critics (Kuznetsov et al. 2020), based on SAC."""

    n_quantiles: Quantiles = Field(25, description="quantiles of the return per critic")
    top_quantiles_to_drop_per_net: NonNegativeInt = Field(2, description="largest quantiles left out per critic")

    @model_validator(mode="after")
    def _some_quantiles_stay(self) -> Self:
        dropped = self.top_quantiles_to_drop_per_net
        if dropped >= self.n_quantiles:
            raise OptionError(
                f"`top_quantiles_to_drop_per_net` must be below n_quantiles = {self.n_quantiles}, got {dropped}."
            )
        return self


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

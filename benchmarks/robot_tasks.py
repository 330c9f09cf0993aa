"""Two tasks of PyBullet robots: a KUKA arm pushes a box, and a Panda arm picks one up.

They differ from Fetch and panda-gym in robot, sizes, units, order of the columns and sensor noise.

    cd benchmarks && hindsight-rl train robot_tasks:KukaPush-v0 --steps 30000
    cd benchmarks && hindsight-rl train robot_tasks:PandaLift-v0 --steps 60000

Needs PyBullet: pip install "hindsight-rl[panda]"
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
import pybullet
import pybullet_data
from gymnasium import spaces
from numpy.typing import NDArray
from pybullet_utils.bullet_client import BulletClient

Array = NDArray[np.float64]
Observation = dict[str, Array]

DOWN = pybullet.getQuaternionFromEuler([np.pi, 0, 0])  # the hand points down
SUBSTEPS = 20  # of 1/240 s in a step
START_STEPS = 20  # of the inverse kinematics, until the hand is at its start
SPREAD = 0.03  # of the hand's start around its home, in m
CLEARANCE = 0.1  # between the hand and the box at the start, in m


class Robot(gymnasium.Env[Observation, NDArray[np.float32]]):
    """A robot arm beside a box on the ground. A goal is a position of the box.

    Observation, in a fixed order that means nothing: position and velocity of the hand, position of the box, its angles,
    its velocity and angular velocity, four joint angles, joints of the gripper. Both positions have sensor noise.
    Action: displacement of the hand along three axes, and the opening of the gripper if there is one.
    """

    urdf: ClassVar[str]
    rest: ClassVar[tuple[float, ...]]  # joint angles, in rad
    hand: ClassVar[int]  # the link
    fingers: ClassVar[tuple[int, ...]] = ()  # joints
    centre: ClassVar[tuple[float, float]]  # of the positions of box and goal, in m
    spread: ClassVar[float]  # of these positions, in m
    home: ClassVar[tuple[float, float, float]]  # of the hand
    lowest: ClassVar[tuple[float, float, float]]  # position of the hand
    highest: ClassVar[tuple[float, float, float]]
    half_size: ClassVar[float]  # of the box
    mass: ClassVar[float]
    friction: ClassVar[float]
    speed = 0.04  # m per step, of a full action
    tolerance = 0.05  # m
    noise = 0.001  # m, standard deviation
    unit = 1.0  # of positions and velocities: 100 for centimetres

    def __init__(self) -> None:
        self.client = BulletClient(pybullet.DIRECT)
        self.client.setAdditionalSearchPath(pybullet_data.getDataPath())
        self.client.setGravity(0, 0, -9.81)
        self.client.loadURDF("plane.urdf", [0, 0, -0.001])
        self.arm = self.client.loadURDF(self.urdf, useFixedBase=True)
        self.box = self._make_box()
        for finger in self.fingers:
            self.client.changeDynamics(self.arm, finger, lateralFriction=1.5)
        n_columns = 22 + len(self.fingers)
        self.order = np.random.default_rng(5).permutation(n_columns)
        sizes = {"observation": n_columns, "achieved_goal": 3, "desired_goal": 3}
        self.observation_space = spaces.Dict(
            {key: spaces.Box(-np.inf, np.inf, (n,), np.float64) for key, n in sizes.items()}
        )
        self.action_space = spaces.Box(-1, 1, (4 if self.fingers else 3,), np.float32)

    def _make_box(self) -> int:
        shape = self.client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[self.half_size] * 3)
        box = int(self.client.createMultiBody(self.mass, shape, -1, [0.5, 0, self.half_size]))
        self.client.changeDynamics(box, -1, lateralFriction=self.friction, spinningFriction=0.001)
        return box

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Move the hand near its home, and put the box and the goal on random positions."""
        super().reset(seed=seed)
        self._reset_joints(self.rest)
        self.target = np.array(self.home)
        self.target[:2] += self.np_random.uniform(-SPREAD, SPREAD, 2)
        for _ in range(START_STEPS):
            self._reset_joints(self._joint_angles())
        for finger in self.fingers:
            self.client.resetJointState(self.arm, finger, 0.04)
        start = self._position_away_from(self.target[:2], CLEARANCE)
        turn = pybullet.getQuaternionFromEuler([0, 0, self.np_random.uniform(-0.6, 0.6)])
        self.client.resetBasePositionAndOrientation(self.box, [*start, self.half_size], turn)
        self.client.resetBaseVelocity(self.box, [0, 0, 0], [0, 0, 0])
        goal = self._position_away_from(start, 1.5 * self.tolerance)
        self.goal = np.array([*goal, self.half_size + self.goal_height()]) * self.unit
        return self._observe(), {}

    def goal_height(self) -> float:
        """Return the height of the box in the next goal, in m."""
        return 0.0

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move the hand and the gripper for SUBSTEPS of the simulation."""
        action = np.clip(action, -1, 1)
        self.target = np.clip(self.target + self.speed * action[:3], self.lowest, self.highest)
        angles = self._joint_angles()
        mode = pybullet.POSITION_CONTROL
        self.client.setJointMotorControlArray(self.arm, range(len(angles)), mode, angles, forces=[200] * len(angles))
        for finger in self.fingers:
            self.client.setJointMotorControl2(self.arm, finger, mode, 0.02 * (action[3] + 1), force=30)
        for _ in range(SUBSTEPS):
            self.client.stepSimulation()
        observation = self._observe()
        reward = float(self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {}))
        return observation, reward, False, False, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Array:
        """Return 0 within the tolerance, else -1. Shapes (..., 3) give (...)."""
        distances = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distances > self.tolerance * self.unit).astype(np.float64)

    def close(self) -> None:
        """End the simulation."""
        self.client.disconnect()

    def _reset_joints(self, angles: tuple[float, ...]) -> None:
        for joint, angle in enumerate(angles):
            self.client.resetJointState(self.arm, joint, angle)

    def _joint_angles(self) -> tuple[float, ...]:
        n = len(self.rest)
        limits = {"lowerLimits": [-2.9] * n, "upperLimits": [2.9] * n, "jointRanges": [5.8] * n, "restPoses": self.rest}
        angles = self.client.calculateInverseKinematics(
            self.arm, self.hand, self.target, DOWN, maxNumIterations=50, **limits
        )
        return tuple(angles[:n])

    def _position_away_from(self, other: Array, distance: float) -> Array:
        while True:
            position = np.array(self.centre) + self.np_random.uniform(-self.spread, self.spread, 2)
            if np.linalg.norm(position - other) >= distance:
                return position

    def _observe(self) -> Observation:
        hand = self.client.getLinkState(self.arm, self.hand, computeLinkVelocity=1)
        position, turn = self.client.getBasePositionAndOrientation(self.box)
        velocity, turning = self.client.getBaseVelocity(self.box)
        angles = [self.client.getJointState(self.arm, joint)[0] for joint in (*range(4), *self.fingers)]
        noise = self.np_random.normal(0, self.noise, (2, 3))
        box = (np.array(position) + noise[0]) * self.unit
        in_units = [(np.array(hand[0]) + noise[1]) * self.unit, np.array(hand[6]) * self.unit, box]
        others = [pybullet.getEulerFromQuaternion(turn), np.array(velocity) * self.unit, turning, angles]
        columns = np.concatenate([*in_units, *others])[self.order]
        return {"observation": columns, "achieved_goal": box, "desired_goal": self.goal.copy()}


class KukaPush(Robot):
    """Push the box to a position on the ground, with a hand that cannot grasp."""

    urdf, rest, hand = "kuka_iiwa/model.urdf", (0, 0.6, 0, -1.5, 0, 1.0, 0), 6
    centre, spread, home = (0.55, 0.05), 0.14, (0.55, 0.05, 0.1)
    lowest, highest = (0.3, -0.25, 0.06), (0.8, 0.3, 0.3)
    half_size, mass, friction = 0.035, 0.3, 0.7


class PandaLift(Robot):
    """Bring the box to a position on the ground or up to 20 cm above it. Positions are in centimetres."""

    urdf, rest, hand, fingers = "franka_panda/panda.urdf", (0, -0.2, 0, -2.2, 0, 2.0, 0.78), 11, (9, 10)
    centre, spread, home = (0.5, 0.0), 0.12, (0.5, 0.0, 0.12)
    lowest, highest = (0.3, -0.25, 0.02), (0.7, 0.25, 0.35)
    half_size, mass, friction, unit = 0.025, 0.1, 1.2, 100.0

    def goal_height(self) -> float:
        """Return 0 in two of five goals, else up to 0.2 m."""
        return 0.0 if self.np_random.random() < 0.4 else self.np_random.uniform(0, 0.2)


gymnasium.register("KukaPush-v0", entry_point=KukaPush, max_episode_steps=50)
gymnasium.register("PandaLift-v0", entry_point=PandaLift, max_episode_steps=50)

"""Scripted controllers: observation -> action. `hindsight-rl record` writes their episodes as demonstrations.

    hindsight-rl record scripted_controllers:pick_and_place --env FetchPickAndPlace-v4 --output fetch/pick-v0
    hindsight-rl train FetchPickAndPlace-v4 --demonstrations fetch/pick-v0

Each action depends on the observation alone: what a policy cannot see, it cannot learn from demonstrations.
"""

import numpy as np

STEP = 0.05  # metres that a Fetch gripper moves in one step at most
ABOVE = np.array([0, 0, 0.06])  # from here the open fingers go down over the cube
GAP = 0.06  # between the fingers; less: they hold the cube


def point_reach(observation):
    """Return the acceleration of PointReach-v0: towards the goal, braking before it."""
    position, velocity = observation["observation"][:2], observation["observation"][2:]
    wanted = 4 * (observation["desired_goal"] - position)
    return np.clip(2 * (np.clip(wanted, -1, 1) - velocity), -1, 1)


def pick_and_place(observation):
    """Return the action of FetchPickAndPlace: open above the cube, go down, close, and carry it to the goal."""
    state, goal = observation["observation"], observation["desired_goal"]
    to_cube, gap = state[6:9], state[9:11].sum()
    is_around = np.linalg.norm(to_cube[:2]) < 0.015 and abs(to_cube[2]) < 0.015
    if is_around and gap < GAP:
        return action(goal - state[3:6], grip=-1)
    if is_around:
        return action(to_cube, grip=-1)
    is_above = np.linalg.norm(to_cube[:2]) < 0.015
    return action(to_cube if is_above else to_cube + ABOVE, grip=1)


def push(observation):
    """Return the action of FetchPush: go behind the cube, seen from the goal, and push it there."""
    state, goal = observation["observation"], observation["desired_goal"]
    to_cube, to_goal = state[6:9], goal[:2] - state[3:5]
    distance = np.linalg.norm(to_goal)
    if distance < 0.02:
        return np.zeros(4)
    along = to_goal / distance
    behind = to_cube[:2] - 0.09 * along  # the path to the start of the push
    sideways = to_cube[:2] - (to_cube[:2] @ along) * along  # the path to the line of the push
    if to_cube[:2] @ along > 0.03 and np.linalg.norm(sideways) < 0.02 and to_cube[2] > -0.02:
        return action(np.array([*(0.2 * to_goal + 0.01 * along + sideways), to_cube[2]]))
    if np.linalg.norm(behind) < 0.02:
        return action(np.array([*behind, to_cube[2]]))
    return action(np.array([*behind, to_cube[2] + 0.08]))  # above the table and the cube


def action(displacement, grip=0):
    """Return the action that moves the gripper by `displacement` (3,), metres, and its fingers: 1 opens, -1 closes."""
    return np.clip(np.array([*(displacement / STEP), grip]), -1, 1)

"""Fit networks to the true values of a PointMaze, and follow the fitted values on a grid: which inputs can represent walls?

    python benchmarks/maze_values.py PointMaze_Medium-v3 --updates 2000 --wavelengths 20 10 5 2.5

Prints the fraction of pairs of start and goal for which steps to the neighbour of the highest value lead to the goal. For
the other pairs, a greedy policy gets stuck. Four random inputs stand for velocity and action.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import gymnasium_robotics
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

SPACING, MARGIN = 0.2, 0.1  # of the grid, and of its points from walls, in cells
DISCOUNT_PER_CELL = 0.8  # about twenty steps with discount 0.99
MOST_STEPS = 150

Array = NDArray[Any]


def free_points(env_id: str) -> Array:
    """Return the points of a grid at which the ball fits, (N, 2)."""
    gymnasium.register_envs(gymnasium_robotics)
    env: Any = gymnasium.make(env_id).unwrapped
    free = np.array([[cell != 1 for cell in row] for row in env.maze.maze_map])
    half = np.array(free.shape[::-1]) / 2
    axes = [np.arange(-size + SPACING / 2, size, SPACING) for size in half]
    points = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)

    def is_free(at: Array) -> Array:
        column, row = np.floor(at + half).astype(int).T
        return free[::-1][row, column]

    offsets = MARGIN * np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])
    inside = points[(np.abs(points) < half - MARGIN).all(1)]
    return inside[np.all([is_free(inside + offset) for offset in offsets], axis=0)]


def distances(points: Array) -> tuple[Array, Array]:
    """Return which points are neighbours, (N, N), and the lengths of the shortest paths, by Floyd and Warshall."""
    straight = np.linalg.norm(points[:, None] - points[None], axis=2)
    is_neighbour = straight < 1.5 * SPACING
    lengths = np.where(is_neighbour, straight, np.inf)
    for through in range(len(points)):
        np.minimum(lengths, lengths[:, through, None] + lengths[None, through], out=lengths)
    return is_neighbour, lengths


def inputs(points: Array, wavelengths: list[float]) -> Tensor:
    """Return normalized positions, and their sines and cosines, (N, n)."""
    waves = [f(points * (2 * np.pi / length)) for length in wavelengths for f in (np.sin, np.cos)]
    return torch.tensor(np.concatenate(((points - points.mean(0)) / points.std(0), *waves), 1), dtype=torch.float32)


def fitted_values(features: Tensor, values: Tensor, updates: int) -> Array:
    """Return the values of all pairs of start and goal, (N, N), by a network of 2x64 after so many updates."""
    n, width = features.shape
    norm = [nn.LayerNorm(64, elementwise_affine=False) for _ in range(2)]
    first, second = nn.Linear(2 * width + 4, 64), nn.Linear(64, 64)
    network = nn.Sequential(first, norm[0], nn.ReLU(), second, norm[1], nn.ReLU(), nn.Linear(64, 1))
    adam = torch.optim.Adam(network.parameters(), 1e-3)

    def predict(start: Tensor, goal: Tensor) -> Tensor:
        column: Tensor = network(torch.cat((features[start], features[goal], torch.randn(len(start), 4)), 1))
        return column[:, 0]

    for _ in range(updates):
        start, goal = torch.randint(n, (2, 256))
        loss = (predict(start, goal) - values[start, goal]).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        return np.stack([predict(torch.arange(n), torch.full((n,), goal)).numpy() for goal in range(n)], 1)


def reached(values: Array, is_neighbour: Array) -> float:
    """Return the fraction of pairs whose goal is reached by steps to the neighbour of the highest value."""
    n = len(values)
    following = np.array([np.flatnonzero(row)[values[row].argmax(0)] for row in is_neighbour])
    at = np.repeat(np.arange(n)[:, None], n, 1)
    for _ in range(MOST_STEPS):
        at = following[at, np.arange(n)]
    return float(is_neighbour[at, np.arange(n)].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", nargs="?", default="PointMaze_Medium-v3")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--wavelengths", type=float, nargs="*", default=[20.0, 10.0, 5.0, 2.5])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    points = free_points(arguments.env)
    is_neighbour, lengths = distances(points)
    true = 20 * DISCOUNT_PER_CELL**lengths
    print(f"{arguments.env}, {len(points)} points. Goals reached by the true values: {reached(true, is_neighbour):.0%}.")
    for wavelengths in ([], arguments.wavelengths):
        torch.manual_seed(arguments.seed)
        fitted = fitted_values(inputs(points, wavelengths), torch.tensor(true, dtype=torch.float32), arguments.updates)
        print(f"wavelengths {wavelengths or 'none'}: {reached(fitted, is_neighbour):.0%} after {arguments.updates} updates")


if __name__ == "__main__":
    main()

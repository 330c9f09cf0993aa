"""The seeds of a run: every random stream follows from the one seed of the run. No stream is defined elsewhere."""

from __future__ import annotations

import numpy as np

from .errors import OptionError

TRAINING, EVALUATION, RECORDING = 0, 1, 7  # episodes, numbered within each stream
EXPLORATION = 2  # of episodes, by their numbers
AGENT, REPLAY, DEMONSTRATIONS = 3, 4, 6  # initial weights, samples of the buffer and of that of the demonstrations
UNSEEN_SEED = 1_000_003  # default of a later evaluation: other episodes than those that selected the best policy


def environment_seed(run_seed: int, stream: int, episode: int) -> int:
    """Return the seed of an episode's reset, below 2**31 because some simulators keep it in a C int.

    stream: TRAINING, EVALUATION or RECORDING. episode: its number within the stream.
    Raises OptionError if `run_seed` is negative.
    """
    if run_seed < 0:
        raise OptionError(f"`seed` must be at least 0, got {run_seed}.")
    return int(_sequence(run_seed, stream, episode).generate_state(1)[0]) >> 1


def exploration_rng(run_seed: int, episode: int) -> np.random.Generator:
    """Return the random generator of the exploration in an episode."""
    return np.random.default_rng(_sequence(run_seed, EXPLORATION, episode))


def stream_seed(run_seed: int, stream: int) -> int:
    """Return the seed of a stream without episodes: AGENT, REPLAY or DEMONSTRATIONS."""
    return int(_sequence(run_seed, stream).generate_state(1)[0])


def _sequence(*numbers: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(numbers[0], spawn_key=numbers[1:])

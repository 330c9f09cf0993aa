"""Pictures of a policy at work: episodes rendered into a .gif, .webp or .mp4 file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ..agents.policy import Policy
from ..errors import MissingExtraError, OptionError
from ..records import OBSERVATION_KEYS, Array, Episode
from .collect import EVALUATION, environment_seed, play_episode

ENDINGS = (".gif", ".webp", ".mp4")


class VideoFile:
    """Collects frames and writes them when closed. Raises OptionError for another ending than .gif, .webp and .mp4."""

    def __init__(self, path: Path, env: gymnasium.Env[Any, Any]) -> None:
        if path.suffix.lower() not in ENDINGS:
            raise OptionError(f"a video file ends in {', '.join(ENDINGS)}, but {path.name} does not")
        self.path = path
        self.frames_per_second = max(1, int(env.metadata.get("render_fps") or 25))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._frames: list[Any] = []
        self._mp4 = _mp4_writer(path, self.frames_per_second) if path.suffix.lower() == ".mp4" else None

    def add(self, frame: Any) -> None:
        """Take one picture as an environment renders it, (height, width, 3) uint8."""
        if self._mp4 is not None:
            self._mp4.append_data(np.ascontiguousarray(frame))
        else:
            self._frames.append(_picture(frame))

    def close(self) -> None:
        """Write what is not written yet."""
        if self._mp4 is not None:
            self._mp4.close()
        elif self._frames:
            first, *others = self._frames
            duration = 1000 // self.frames_per_second  # of a frame, in milliseconds
            first.save(self.path, save_all=True, append_images=others, duration=duration, loop=0)


def film(
    env: gymnasium.Env[Any, Any], policy: Policy, run_seed: int, number: int, limit: int | None, video: VideoFile | None
) -> tuple[Episode, int]:
    """Play one evaluation episode, as `Collector` does, with a picture per step where there is a video.

    limit: steps at most. Returns the episode and its seed.
    """

    def act(observation: Mapping[str, Array]) -> Array:
        if video is not None:
            video.add(env.render())
        seen, achieved, desired = (observation[key] for key in OBSERVATION_KEYS)
        return policy.act(seen, achieved, desired)

    seed = environment_seed(run_seed, EVALUATION, number)
    episode = play_episode(env, act, seed, number, limit)
    if video is not None:
        video.add(env.render())
    return episode, seed


def _picture(frame: Array) -> Any:
    """With 256 colours: a tenth of the memory, and what a .gif holds anyway."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError('writing .gif and .webp needs Pillow: pip install "hindsight-rl[train]"') from None
    return Image.fromarray(np.asarray(frame, np.uint8)).quantize(256)


def _mp4_writer(path: Path, frames_per_second: int) -> Any:
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401 - imageio finds it by itself, but says little where it is missing
    except ImportError:
        raise MissingExtraError('writing .mp4 needs ffmpeg: pip install "hindsight-rl[video]", or name a .gif') from None
    return imageio.v2.get_writer(path, fps=frames_per_second, macro_block_size=2)

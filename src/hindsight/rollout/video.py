"""Pictures of a policy at work: episodes rendered into a .gif, .webp or .mp4 file, each frame with what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ..agents.policy import Policy
from ..envs.goal_env import read_success
from ..envs.ids import APT_GL
from ..errors import GoalEnvError, MissingExtraError, OptionError
from ..records import OBSERVATION_KEYS, Array, Episode
from .collect import EVALUATION, environment_seed, play_episode

ENDINGS = (".gif", ".webp", ".mp4")
SECONDS_AT_END = 0.6  # that the last frame of an episode stays
INK, STRIP = (255, 255, 255), (20, 24, 28)
WORDS = {True: ("success", (86, 220, 170)), False: ("not yet", (190, 198, 206)), None: ("", INK)}


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

    def add(self, frame: Array, caption: str = "", success: bool | None = None, seconds: float = 0.0) -> None:
        """Take one picture as an environment renders it, (height, width, 3) uint8, and write on it what it shows.

        seconds: how long it stays; one frame at least.
        """
        picture = captioned(frame, caption, success)
        times = max(1, round(seconds * self.frames_per_second))
        if self._mp4 is not None:
            for _ in range(times):
                self._mp4.append_data(np.asarray(picture))
        else:  # 256 colours take a tenth of the memory, and are what a .gif holds anyway
            self._frames += [picture.quantize(256)] * times

    def close(self) -> None:
        """Write what is not written yet."""
        if self._mp4 is not None:
            self._mp4.close()
        elif self._frames:
            first, *others = self._frames
            duration = 1000 // self.frames_per_second  # of a frame, in milliseconds
            first.save(self.path, save_all=True, append_images=others, duration=duration, loop=0)


class Filmed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment of which every state goes into a video, with episode, step and success."""

    def __init__(self, env: gymnasium.Env[Any, Any], video: VideoFile, number: int) -> None:
        super().__init__(env)
        self._video, self._number, self._steps = video, number, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """As the environment's, with a picture."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps = 0
        self._shoot(None, 0.0)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """As the environment's, with a picture."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        self._shoot(read_success(info), SECONDS_AT_END if terminated or truncated else 0.0)
        return observation, reward, terminated, truncated, info

    def _shoot(self, success: bool | None, seconds: float) -> None:
        try:
            frame = np.asarray(self.env.render(), np.uint8)
        except Exception as problem:
            raise GoalEnvError(
                f"the environment could not be drawn ({type(problem).__name__}: {problem}). Without a display simulators "
                f"need EGL: {APT_GL}"
            ) from problem
        self._video.add(frame, f"episode {self._number}   step {self._steps}", success, seconds)


def film(
    env: gymnasium.Env[Any, Any], policy: Policy, run_seed: int, number: int, limit: int | None, video: VideoFile | None
) -> tuple[Episode, int]:
    """Play one evaluation episode, as `Collector` does, with a picture per state where there is a video.

    limit: steps at most. Returns the episode and its seed. Raises GoalEnvError where the environment cannot be drawn.
    """

    def act(observation: Mapping[str, Array]) -> Array:
        seen, achieved, desired = (observation[key] for key in OBSERVATION_KEYS)
        return policy.act(seen, achieved, desired)

    seed = environment_seed(run_seed, EVALUATION, number)
    return play_episode(Filmed(env, video, number) if video else env, act, seed, number, limit), seed


def captioned(frame: Array, caption: str, success: bool | None) -> Any:
    """A frame as a picture of Pillow, with a caption and the word for success on a strip above it."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise MissingExtraError('a video needs Pillow: pip install "hindsight-rl[train]"') from None
    picture = Image.fromarray(frame)
    if not caption:
        return picture
    size = max(10, picture.height // 24)
    height = 2 * size - size % 2  # even, as .mp4 wants it
    sheet = Image.new("RGB", (picture.width, picture.height + height), STRIP)
    sheet.paste(picture, (0, height))
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size)
    draw.text((size // 2, height // 2), caption, INK, font, anchor="lm")
    word, colour = WORDS[success]
    draw.text((picture.width - size // 2, height // 2), word, colour, font, anchor="rm")
    return sheet


def _mp4_writer(path: Path, frames_per_second: int) -> Any:
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401 - imageio finds it by itself, but says little where it is missing
    except ImportError:
        raise MissingExtraError('writing .mp4 needs ffmpeg: pip install "hindsight-rl[video]", or name a .gif') from None
    return imageio.v2.get_writer(path, fps=frames_per_second, macro_block_size=2)

"""Record episodes as a .gif, .webp or .mp4 file, with a caption on each frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ..agents.policy import Policy
from ..envs.goal_env import APT_GL
from ..envs.goal_functions import read_success
from ..envs.random_play import Environment
from ..errors import GoalEnvError, OptionError, needs_extra
from ..records import Array, Episode
from ..seeds import EVALUATION, environment_seed
from ..storage import VIDEO_SUFFIXES
from .collect import PolicyActor, play_episode

LAST_FRAME_SECONDS = 0.6  # for which the last frame of an episode is shown
TEXT_COLOUR, STRIP_COLOUR = (255, 255, 255), (20, 24, 28)
SUCCESS_TEXT = {True: ("success", (86, 220, 170)), False: ("not yet", (190, 198, 206)), None: ("", TEXT_COLOUR)}


class VideoFile:
    """Collects frames and writes them to a file. Raises OptionError unless the suffix is one of VIDEO_SUFFIXES.

    path: of the file; its folder is made.
    env: the frame rate is its metadata's `render_fps`, 25 by default.
    """

    def __init__(self, path: Path, env: Environment) -> None:
        if path.suffix.lower() not in VIDEO_SUFFIXES:
            raise OptionError(f"A video file must end in {', '.join(VIDEO_SUFFIXES)}, got {path.name}.")
        self.path = path
        self.frames_per_second = max(1, int(env.metadata.get("render_fps") or 25))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._frames: list[Any] = []
        self._mp4 = _mp4_writer(path, self.frames_per_second) if path.suffix.lower() == ".mp4" else None

    def add(self, frame: Array, caption: str, success: bool | None, seconds: float) -> None:
        """Append one frame, (height, width, 3) uint8.

        seconds: how long it is shown; one frame at least.
        """
        picture = captioned(frame, caption, success)
        count = max(1, round(seconds * self.frames_per_second))
        if self._mp4 is not None:
            for _ in range(count):
                self._mp4.append_data(np.asarray(picture))
        else:  # 256 colours need a tenth of the memory; a .gif holds no more
            self._frames += [picture.quantize(256)] * count

    def close(self) -> None:
        """Write the file."""
        if self._mp4 is not None:
            self._mp4.close()
        elif self._frames:
            first, *others = self._frames
            milliseconds = 1000 // self.frames_per_second
            first.save(self.path, save_all=True, append_images=others, duration=milliseconds, loop=0)


class RecordVideo(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Add a frame to a video at every reset and step, with the episode's number, the step and success."""

    def __init__(self, env: Environment, video: VideoFile, number: int) -> None:
        super().__init__(env)
        self._video, self._number, self._steps = video, number, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and add a frame."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps = 0
        self._add_frame(None, 0.0)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and add a frame."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        self._add_frame(read_success(info), LAST_FRAME_SECONDS if terminated or truncated else 0.0)
        return observation, reward, terminated, truncated, info

    def _add_frame(self, success: bool | None, seconds: float) -> None:
        try:
            frame = np.asarray(self.env.render(), np.uint8)
        except Exception as problem:
            raise GoalEnvError(
                f"The environment could not be rendered ({type(problem).__name__}: {problem}). Without a display, "
                f"simulators need EGL: {APT_GL}"
            ) from problem
        self._video.add(frame, f"episode {self._number}   step {self._steps}", success, seconds)


def play_with_video(
    env: Environment, policy: Policy, run_seed: int, number: int, limit: int | None, video: VideoFile | None
) -> tuple[Episode, int]:
    """Play one evaluation episode as `Collector` does. Return it and the seed of its reset.

    number: of the episode. limit: maximum number of steps. video: records the episode; None records nothing.
    Raises GoalEnvError if the environment cannot be rendered.
    """
    seed = environment_seed(run_seed, EVALUATION, number)
    recorded = RecordVideo(env, video, number) if video else env
    return play_episode(recorded, PolicyActor(policy), seed, number, limit), seed


def captioned(frame: Array, caption: str, success: bool | None) -> Any:
    """Return a frame as a Pillow image, with the caption and the success on a strip above it."""
    with needs_extra("train", "A video needs Pillow"):
        from PIL import Image, ImageDraw, ImageFont
    picture = Image.fromarray(frame)
    size = max(10, picture.height // 24)
    height = 2 * size - size % 2  # even, as .mp4 requires
    sheet = Image.new("RGB", (picture.width, picture.height + height), STRIP_COLOUR)
    sheet.paste(picture, (0, height))
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size)
    draw.text((size // 2, height // 2), caption, TEXT_COLOUR, font, anchor="lm")
    text, colour = SUCCESS_TEXT[success]
    draw.text((picture.width - size // 2, height // 2), text, colour, font, anchor="rm")
    return sheet


def _mp4_writer(path: Path, frames_per_second: int) -> Any:
    with needs_extra("video", "Writing .mp4 needs ffmpeg. Name a .gif file, or"):
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401  (imageio finds it, but does not say how to install it)
    return imageio.v2.get_writer(path, fps=frames_per_second, macro_block_size=2)

import sys

import numpy as np
import pytest

from hindsight_rl import PointReach
from hindsight_rl.envs.goal_env import make_goal_env
from hindsight_rl.errors import GoalEnvError, MissingExtraError, OptionError
from hindsight_rl.rollout.video import RecordVideo, VideoFile, captioned

Image = pytest.importorskip("PIL.Image")


def record(path, episodes=2, steps=4):
    env = PointReach(max_steps=steps, render_mode="rgb_array")
    video = VideoFile(path, env)
    for number in range(episodes):
        recorded = RecordVideo(env, video, number)
        recorded.reset(seed=number)
        for _ in range(steps):
            *_, info = recorded.step(np.zeros(2, np.float32))
    video.close()
    return video, info


@pytest.mark.parametrize("ending", [".gif", ".webp"])
def test_every_state_is_a_frame_and_the_last_one_stays_longer(tmp_path, ending):
    video, _ = record(tmp_path / f"film{ending}")
    with Image.open(video.path) as picture:
        assert picture.width == 240
        assert picture.height == 240 + 20  # the strip
        total = 0
        for frame in range(picture.n_frames):
            picture.seek(frame)
            picture.load()
            total += picture.info["duration"]
    at_end = round(0.6 * video.frames_per_second)
    assert total == pytest.approx(2 * (4 + at_end) * (1000 // video.frames_per_second), rel=0.02)


def test_mp4_is_written_with_ffmpeg(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    record(tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").read_bytes()[4:8] == b"ftyp"


def test_without_ffmpeg_the_error_names_the_gif(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"Name a .gif file, or: pip install .*\[video\]"):
        record(tmp_path / "film.mp4")
    record(tmp_path / "film.gif")


def test_the_caption_shows_success_by_word_and_colour():
    frame = np.full((240, 240, 3), 200, np.uint8)
    strips = {success: np.asarray(captioned(frame, "episode 1   step 3", success))[:20] for success in (True, False, None)}
    green = strips[True].reshape(-1, 3).astype(int)
    assert (green[:, 1] - green[:, 0]).max() > 100
    assert (strips[False][:, 120:] != strips[None][:, 120:]).any()
    assert (strips[True][:, :120] == strips[None][:, :120]).all()  # the caption
    assert (np.asarray(captioned(frame, "episode 1", True))[20:] == frame).all()


def test_other_suffixes_are_an_error(tmp_path):
    with pytest.raises(OptionError, match=r"must end in .mp4, .webp, .gif, got film.avi"):
        record(tmp_path / "film.avi")


class Dark(PointReach):
    def render(self):
        raise ImportError("Cannot initialize a EGL device display")


def test_a_failing_render_names_the_command_that_fixes_it(tmp_path):
    env = Dark(max_steps=4, render_mode="rgb_array")
    with pytest.raises(GoalEnvError, match=r"Cannot initialize a EGL.*apt-get install -y libegl1"):
        RecordVideo(env, VideoFile(tmp_path / "film.gif", env), 0).reset()


@pytest.mark.simulator
@pytest.mark.filterwarnings("ignore::DeprecationWarning:gymnasium_robotics")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:mujoco")
def test_a_simulator_is_recorded_without_a_display(tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    env = make_goal_env("FetchReach-v4", render_mode="rgb_array")
    video = VideoFile(tmp_path / "arm.webp", env)
    recorded = RecordVideo(env, video, 0)
    recorded.reset(seed=0)
    for _ in range(3):
        recorded.step(np.ones(4, np.float32))
    video.close()
    env.close()
    with Image.open(video.path) as picture:
        assert picture.size == (480, 520)
        assert picture.n_frames == 4

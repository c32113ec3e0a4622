"""Layout of tiles, and decoded videos: number of frames, colors, and errors."""

import sys
import tracemalloc

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

from neuroevo.analysis.video.tiles import Tiles
from neuroevo.analysis.video.writer import VideoWriter, check_format
from neuroevo.core.errors import UserError


def decode(path):
    """Return a video's frames, uint8 [frames, height, width, 3]; a .gif is decoded by Pillow, not by ffmpeg."""
    if path.suffix == ".gif":
        with Image.open(path) as image:
            return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)])
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return np.stack([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader])


def facts(path):
    """Return codec, pixel format, frames per second, and size of a video."""
    return next(imageio_ffmpeg.read_frames(str(path)))


def fps_of(path):
    """Return the mean frames per second; durations in a .gif are multiples of 10 ms."""
    if path.suffix == ".mp4":
        return facts(path)["fps"]
    with Image.open(path) as image:
        durations = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
    return 1000 * len(durations) / sum(durations)


def moving_blocks(frames, height, width):
    """Return frames, uint8 [frames, height, width, 3], of two saturated blocks that move over a background."""
    pictures = np.empty((frames, height, width, 3), np.uint8)
    pictures[:] = (40, 60, 160)
    for i, picture in enumerate(pictures):
        picture[10:20, 2 * i : 2 * i + 12] = (200, 72, 72)
        picture[24:30, width - 12 - 2 * i : width - 2 * i] = (232, 204, 99)
    return pictures


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_frames_come_back(tmp_path, suffix):
    pictures = moving_blocks(20, 44, 66)
    path = tmp_path / f"video{suffix}"
    with VideoWriter(path, 44, 66, 12.5) as video:
        for picture in pictures:
            video.write(picture)
    found = decode(path)
    assert found.shape == pictures.shape
    assert fps_of(path) == pytest.approx(12.5)
    if suffix == ".gif":
        assert np.array_equal(found, pictures)
        return
    assert facts(path)["codec"] == "h264" and facts(path)["pix_fmt"].startswith("yuv420p(tv, bt709")
    difference = np.abs(found.astype(int) - pictures)
    assert difference.mean() < 2 and np.percentile(difference, 99) < 30
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # playback can start before the file is loaded


def test_a_gif_keeps_256_colors_a_frame(tmp_path):
    rng, pictures = np.random.default_rng(0), []
    for count in (2, 100, 100, 3, 256, 1, 255, 256, 2):  # more than 256 in total, so that palettes must change
        colors = rng.integers(256, size=(count, 3), dtype=np.uint8)
        pictures.append(rng.permutation(np.concatenate([colors, colors[rng.integers(count, size=256 - count)]])))
    pictures = np.reshape(pictures + pictures[::-1], (-1, 16, 16, 3))
    with VideoWriter(tmp_path / "a.gif", 16, 16, 10) as video:
        for picture in pictures:
            video.write(picture)
    assert np.array_equal(decode(tmp_path / "a.gif"), pictures)


def test_a_gif_of_more_colors_comes_near(tmp_path):
    ramp = np.arange(64, dtype=np.uint8) * 4
    picture = np.stack(np.broadcast_arrays(ramp[:, None], ramp, 128), axis=-1).astype(np.uint8)  # 4096 colors
    with VideoWriter(tmp_path / "a.gif", 64, 64, 10) as video:
        video.write(picture)
        video.write(picture // 2)
    first, second = decode(tmp_path / "a.gif").astype(int)
    assert np.abs(first - picture).max() < 20 and np.abs(second - picture // 2).max() < 20


def test_frames_are_not_gathered(tmp_path):
    picture = np.zeros((400, 400, 3), np.uint8)
    tracemalloc.start()
    with VideoWriter(tmp_path / "a.mp4", 400, 400, 60) as video:
        for _ in range(300):
            video.write(picture)
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * picture.nbytes
    assert len(decode(tmp_path / "a.mp4")) == 300


@pytest.mark.parametrize("name", ["a.avi", "a", "a.mp4.png"])
def test_other_endings(tmp_path, name):
    for refuse in (lambda: check_format(tmp_path / name), lambda: VideoWriter(tmp_path / name, 16, 16, 10)):
        with pytest.raises(UserError, match=rf"{name} .*\.mp4 or \.gif"):
            refuse()


@pytest.mark.parametrize("ffmpeg", ["/nowhere/ffmpeg", "/bin/false"])
def test_no_ffmpeg(tmp_path, monkeypatch, ffmpeg):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", ffmpeg)
    with pytest.raises(UserError, match=f"ffmpeg, .*{ffmpeg}"):
        VideoWriter(tmp_path / "a.mp4", 16, 16, 10)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UserError, match="ffmpeg.* imageio-ffmpeg"):
        VideoWriter(tmp_path / "a.mp4", 16, 16, 10)


def test_a_frame_that_does_not_fit(tmp_path):
    with VideoWriter(tmp_path / "a.gif", 16, 18, 10) as video:
        video.write(np.zeros((16, 18, 3), np.uint8))
        with pytest.raises(ValueError, match=r"uint8 \(18, 16, 3\), expected uint8 \(16, 18, 3\)"):
            video.write(np.zeros((18, 16, 3), np.uint8))
        with pytest.raises(ValueError, match="float64"):
            video.write(np.zeros((16, 18, 3)))


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_what_ffmpeg_complains_of(tmp_path, suffix):
    with (
        pytest.raises(RuntimeError, match="ffmpeg ended with [0-9]+: .*No such file or directory"),
        VideoWriter(tmp_path / "absent" / f"a{suffix}", 16, 16, 10) as video,
    ):
        for _ in range(10_000):
            video.write(np.zeros((16, 16, 3), np.uint8))
    with (
        pytest.raises(RuntimeError, match="ffmpeg ended with [0-9]+: .*"),
        VideoWriter(tmp_path / "absent" / f"b{suffix}", 16, 16, 10) as video,
    ):
        video.write(np.zeros((16, 16, 3), np.uint8))  # too little data for an error before the end


def test_the_block_may_fail(tmp_path):
    with pytest.raises(ZeroDivisionError), VideoWriter(tmp_path / "a.mp4", 16, 16, 10) as video:
        video.write(np.zeros((16, 16, 3), np.uint8))
        1 / 0  # noqa: B018
    assert video._process.returncode is not None


@pytest.mark.parametrize(
    ("tiles", "rows", "columns"), [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 2), (5, 2, 3), (8, 2, 4), (9, 3, 3)]
)
@pytest.mark.parametrize("scale", [1, 2, 3])
@pytest.mark.parametrize("captions", [True, False])
def test_the_grid(tiles, rows, columns, scale, captions):
    height, width = 15, 21
    screens = np.random.default_rng(0).integers(256, size=(tiles, height, width, 3), dtype=np.uint8)
    grid = Tiles(tiles, height, width, scale, captions)
    bright = np.arange(tiles) % 2 == 0
    picture = grid.picture(screens, ["elite: 10"] * tiles, bright)
    assert picture.shape == grid.shape and picture.dtype == np.uint8
    assert grid.shape[0] % 2 == grid.shape[1] % 2 == 0
    covered = np.zeros(picture.shape[:2], int)
    for tile, screen in enumerate(screens):
        own = picture[grid.place(tile)]
        covered[grid.place(tile)] += 1
        assert own.shape == (height * scale, width * scale, 3)
        expected = screen if bright[tile] else screen // 2
        for y in range(scale):
            for x in range(scale):
                assert np.array_equal(own[y::scale, x::scale], expected)
    assert covered.max() == 1  # tiles do not overlap
    corners = [(grid.place(tile)[0].start, grid.place(tile)[1].start) for tile in range(tiles)]
    assert corners == sorted(corners)
    assert len({y for y, _ in corners}) == rows and len({x for _, x in corners}) == columns
    assert bool(picture[covered == 0].any()) == captions


def test_captions_are_above_their_tiles():
    grid = Tiles(2, 30, 80, 2)
    screens, bright = np.zeros((2, 30, 80, 3), np.uint8), np.array([True, True])
    one = grid.picture(screens, ["elite: 10", ""], bright)
    rows, columns = grid.place(0)
    caption = one[: rows.start, columns]
    assert caption.max() == 255 and set(np.unique(caption)) == {0, 255}
    one[: rows.start, columns] = 0
    assert not one.any()
    other = grid.picture(screens, ["elite: 20", ""], bright)
    assert not np.array_equal(other[: rows.start, columns], caption)
    assert np.array_equal(
        grid.picture(screens, ["elite: 10" + " and more" * 50, ""], bright)[rows.start :], one[rows.start :]
    )

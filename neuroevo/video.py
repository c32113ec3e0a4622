"""Frames into an .mp4 or .gif file, by the ffmpeg that imageio-ffmpeg finds or brings."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neuroevo.errors import UserError
from neuroevo.palette import Palette


class _Format(NamedTuple):
    """pixels: ffmpeg's name for what it is given. encoder: makes a function from a frame to that, as bytes. arguments:
    for ffmpeg's output."""

    pixels: str
    encoder: Callable[[], Callable[[np.ndarray], bytes]]
    arguments: list[str]


# H.264 in 4:2:0 with an even size is what every browser plays; the color matrix is said in the file, as players guess
# differently. A screen of Atari has at most 128 colors, of which a .gif loses none.
_H264 = ["-vf", "scale=out_color_matrix=bt709:out_range=tv", "-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p"]
_H264 += ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-movflags", "+faststart"]
_FORMATS = {
    ".mp4": _Format("rgb24", lambda: np.ndarray.tobytes, _H264),
    ".gif": _Format("pal8", lambda: Palette().encode, []),
}


def check_format(path: Path) -> None:
    """UserError when the name does not end in .mp4 or .gif."""
    if path.suffix.lower() not in _FORMATS:
        raise UserError(f"{path} ends in '{path.suffix}', expected a name that ends in {' or '.join(_FORMATS)}")


def find_ffmpeg() -> str:
    """The path or name of an ffmpeg that runs. UserError: there is none."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        ffmpeg = get_ffmpeg_exe()
        subprocess.run([ffmpeg, "-version"], capture_output=True, check=True, stdin=subprocess.DEVNULL)
    except (ImportError, RuntimeError, OSError, subprocess.CalledProcessError) as error:
        raise UserError(
            f"videos need ffmpeg, and none works ({error}): install the package imageio-ffmpeg, or an ffmpeg, "
            "and name it in IMAGEIO_FFMPEG_EXE if it is not found"
        ) from None
    return ffmpeg


class VideoWriter:
    """Writes a video while it is a context manager: frames uint8 [height, width, 3] of one even size, fps a second.

    If the block ends by an exception, the file at `path` is incomplete. RuntimeError: ffmpeg failed, and what it said.
    """

    def __init__(self, path: Path, height: int, width: int, fps: float):
        check_format(path)
        form = _FORMATS[path.suffix.lower()]
        self._shape, self._encode = (height, width, 3), form.encoder()
        self._command = [
            *(find_ffmpeg(), "-y", "-v", "error", "-f", "rawvideo", "-pix_fmt", form.pixels, "-s", f"{width}x{height}"),
            *("-r", f"{fps:g}", "-i", "-", "-an", *form.arguments, str(path.absolute())),
        ]

    def __enter__(self) -> VideoWriter:
        self._remarks = tempfile.TemporaryFile()
        # Its own session, so that Ctrl-C is for the caller to handle.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stderr=self._remarks, start_new_session=True
        )
        return self

    def write(self, frame: np.ndarray) -> None:
        """Appends a frame."""
        if frame.shape != self._shape or frame.dtype != np.uint8:
            raise ValueError(f"the frame is {frame.dtype} {frame.shape}, expected uint8 {self._shape}")
        try:
            self._process.stdin.write(self._encode(frame))
        except BrokenPipeError:
            self._process.wait()
            raise RuntimeError(self._failure()) from None

    def __exit__(self, kind: type | None, *_: object) -> None:
        try:
            if kind is not None:
                self._process.kill()
            self._process.communicate()
            if kind is None and self._process.returncode != 0:
                raise RuntimeError(self._failure())
        finally:
            self._process.kill()
            self._process.wait()
            self._remarks.close()

    def _failure(self) -> str:
        self._remarks.seek(0)
        said = self._remarks.read().decode(errors="replace").strip()
        return f"ffmpeg ended with {self._process.returncode}: {said or 'it said nothing'}"

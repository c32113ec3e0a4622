"""Write frames to an .mp4 or .gif file with the ffmpeg that imageio-ffmpeg finds or bundles."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neuroevo.analysis.video.palette import Palette
from neuroevo.core.errors import UserError


class _Format(NamedTuple):
    """Settings of ffmpeg for a file format.

    Attributes:
        pixels: ffmpeg's name for the pixel format of the frames it receives.
        encoder: Factory of a function that converts a frame to bytes of that format.
        arguments: ffmpeg's options for the output.
    """

    pixels: str
    encoder: Callable[[], Callable[[np.ndarray], bytes]]
    arguments: list[str]


# Every browser plays H.264 in 4:2:0 with an even size. The file specifies its color matrix, because players' defaults
# differ. An Atari screen has at most 128 colors, so that a .gif is lossless.
_H264 = ["-vf", "scale=out_color_matrix=bt709:out_range=tv", "-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p"]
_H264 += ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-movflags", "+faststart"]
_FORMATS = {
    ".mp4": _Format("rgb24", lambda: np.ndarray.tobytes, _H264),
    ".gif": _Format("pal8", lambda: Palette().encode, []),
}


def check_format(path: Path) -> None:
    """Check that the name of a video has a supported suffix.

    Raises:
        UserError: The name does not end in .mp4 or .gif.
    """
    if path.suffix.lower() not in _FORMATS:
        raise UserError(f"{path} ends in '{path.suffix}', expected a name that ends in {' or '.join(_FORMATS)}")


def find_ffmpeg() -> str:
    """Return the path or name of an ffmpeg that runs.

    Raises:
        UserError: No working ffmpeg was found.
    """
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        ffmpeg = get_ffmpeg_exe()
        subprocess.run([ffmpeg, "-version"], capture_output=True, check=True, stdin=subprocess.DEVNULL)
    except (ImportError, RuntimeError, OSError, subprocess.CalledProcessError) as error:
        raise UserError(
            f"videos require ffmpeg, and no working one was found ({error}): install the package imageio-ffmpeg, or "
            "install ffmpeg and set IMAGEIO_FFMPEG_EXE to its path if it is not found"
        ) from None
    return ffmpeg


class VideoWriter:
    """Writer of a video, frame by frame; use it as a context manager, which completes the file at the end of the block.

    If the block ends with an exception, the file at `path` is left incomplete. If ffmpeg fails, write() or the end of
    the block raises RuntimeError with ffmpeg's message.

    Args:
        path: The file to write, whose name ends in .mp4 or .gif.
        height: Height of the frames in pixels, an even number.
        width: Width of the frames in pixels, an even number.
        fps: Frames per second.

    Raises:
        UserError: The suffix is not supported, or no working ffmpeg was found.
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
        # ffmpeg gets its own session, so that Ctrl-C reaches only this process, which handles it.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stderr=self._remarks, start_new_session=True
        )
        return self

    def write(self, frame: np.ndarray) -> None:
        """Append a frame.

        Args:
            frame: RGB, uint8 [height, width, 3].

        Raises:
            ValueError: The shape or dtype of the frame is invalid.
            RuntimeError: ffmpeg failed; the message contains its error output.
        """
        if frame.shape != self._shape or frame.dtype != np.uint8:
            raise ValueError(f"the frame is {frame.dtype} {frame.shape}, expected uint8 {self._shape}")
        stdin = self._process.stdin
        assert stdin is not None  # __enter__ opened a pipe
        try:
            stdin.write(self._encode(frame))
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
        message = self._remarks.read().decode(errors="replace").strip()
        return f"ffmpeg ended with {self._process.returncode}: {message or 'it gave no reason'}"

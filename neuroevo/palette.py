"""Pictures as indices into a palette of 256 colors, without loss where a picture has no more than that.

ffmpeg's own palettes (palettegen, paletteuse) now and then took a frame's colors for its neighbor's.
"""

from __future__ import annotations

import numpy as np

_SIZE = 256


class Palette:
    """Takes up colors as they come, and starts again when a picture's new ones do not fit in."""

    def __init__(self) -> None:
        self._index_of = np.full(2**24, -1, np.int16)  # by color, 0xRRGGBB
        self._colors = np.zeros(_SIZE, np.uint32)
        self._used = 0

    def encode(self, picture: np.ndarray) -> bytes:
        """A picture uint8 [height, width, 3] as ffmpeg's pal8: indices, then 256 times blue, green, red, alpha."""
        codes = _codes(picture)
        new = np.unique(codes[self._index_of[codes] < 0])
        if self._used + len(new) > _SIZE:
            self._index_of[self._colors[: self._used]] = -1
            self._used, new = 0, np.unique(codes)
            if len(new) > _SIZE:
                codes = _codes(_reduced(picture))
                new = np.unique(codes)
        self._index_of[new] = np.arange(self._used, self._used + len(new))
        self._colors[self._used : self._used + len(new)] = new
        self._used += len(new)
        opaque = self._colors | np.uint32(0xFF000000)
        return self._index_of[codes].astype(np.uint8).tobytes() + opaque.astype("=u4").tobytes()


def _codes(picture: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(picture.astype(np.uint32), -1, 0)
    return red << 16 | green << 8 | blue


def _reduced(picture: np.ndarray) -> np.ndarray:
    """The picture with at most 256 colors, near its own."""
    from PIL import Image

    return np.asarray(Image.fromarray(picture).quantize(_SIZE).convert("RGB"))

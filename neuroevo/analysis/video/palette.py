"""Encode pictures as indices into a palette of 256 colors, without loss for pictures of at most 256 colors.

ffmpeg's palette filters (palettegen, paletteuse) occasionally gave a frame the colors of the next or previous frame.
"""

from __future__ import annotations

import numpy as np

_SIZE = 256


class Palette:
    """Palette that accumulates the colors of successive pictures and is reset when new colors do not fit."""

    def __init__(self) -> None:
        self._index_of = np.full(2**24, -1, np.int16)  # by color, 0xRRGGBB
        self._colors = np.zeros(_SIZE, np.uint32)
        self._used = 0

    def encode(self, picture: np.ndarray) -> bytes:
        """Encode a picture in ffmpeg's pixel format pal8.

        Args:
            picture: RGB, uint8 [height, width, 3]. If it has more than 256 colors, they are reduced to 256.

        Returns:
            height * width palette indices of one byte, then 256 colors of four bytes: blue, green, red, alpha.
        """
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
    """Approximate a picture by at most 256 colors."""
    from PIL import Image

    return np.asarray(Image.fromarray(picture).quantize(_SIZE).convert("RGB"))

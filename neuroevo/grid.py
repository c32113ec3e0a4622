"""Several screens as one picture: tiles side by side, enlarged, each under a line of text."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

_CAPTION = 18  # pixels; even, as all distances are, so that a video's 2x2 blocks of color meet the pixels of scale 2
_TEXT = 12
_GAP = 4


class Grid:
    """M tiles, uint8 [M, height, width, 3], each pixel `scale` wide and high. shape: the picture's, (height, width, 3).

    Rows are as many as columns or fewer, since screens are often higher than wide. Sides of the picture are even.
    """

    def __init__(self, tiles: int, height: int, width: int, scale: int, captions: bool = True):
        self._scale, self._caption = scale, _CAPTION if captions else 0
        self._height, self._width = height * scale, width * scale
        rows = math.isqrt(tiles)
        columns = -(-tiles // rows)
        self._cells = [divmod(tile, columns) for tile in range(tiles)]
        self._step = _even(self._caption + self._height) + _GAP, _even(self._width) + _GAP
        self.shape = (rows * self._step[0] - _GAP, columns * self._step[1] - _GAP, 3)

    def place(self, tile: int) -> tuple[slice, slice]:
        """Rows and columns of the picture that show the tile, without its caption."""
        row, column = self._cells[tile]
        top, left = row * self._step[0] + self._caption, column * self._step[1]
        return slice(top, top + self._height), slice(left, left + self._width)

    def picture(self, tiles: np.ndarray, captions: Sequence[str], bright: np.ndarray) -> np.ndarray:
        """uint8 [*shape] of tiles [M, height, width, 3]; those that are not bright, bool [M], are at half light."""
        picture = np.zeros(self.shape, np.uint8)
        for tile, (screen, caption, light) in enumerate(zip(tiles, captions, bright, strict=True)):
            rows, columns = self.place(tile)
            screen = screen if light else screen // 2
            picture[rows, columns] = screen.repeat(self._scale, axis=0).repeat(self._scale, axis=1)
            if self._caption:
                picture[rows.start - self._caption : rows.start, columns] = _text(caption, self._width)
        return picture


def _even(length: int) -> int:
    return length + length % 2


@functools.lru_cache(maxsize=256)
def _text(text: str, width: int) -> np.ndarray:
    """uint8 [_CAPTION, width, 3]: white on black, cut off at the right."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, _CAPTION))
    draw = ImageDraw.Draw(image)
    draw.fontmode = "1"  # without gray edges, which would take colors from a .gif's palette
    draw.text((2, 1), text, fill="white", font=ImageFont.load_default(_TEXT))
    return np.asarray(image)

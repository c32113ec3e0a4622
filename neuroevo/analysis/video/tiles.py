"""Layout of several screens in a picture: enlarged tiles side by side, each with a caption above."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

_CAPTION = 18  # pixels; all distances are even, so that a video's 2x2 color blocks match the pixels at scale 2
_TEXT = 12
_GAP = 4


class Tiles:
    """Layout of M screens of the same size as tiles of a picture.

    The layout has at most as many rows as columns, since screens are often taller than wide. The picture's height and
    width are even, as video encoders require.

    Args:
        tiles: M, the number of screens.
        height: Height of a screen, in pixels.
        width: Width of a screen, in pixels.
        scale: Width and height in the picture of each pixel of a screen.
        captions: Whether to leave room for a line of text above each tile.

    Attributes:
        shape: The shape of the picture, (height, width, 3).
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
        """Return the rows and columns of a tile in the picture, without its caption.

        Args:
            tile: Index in [0, M).
        """
        row, column = self._cells[tile]
        top, left = row * self._step[0] + self._caption, column * self._step[1]
        return slice(top, top + self._height), slice(left, left + self._width)

    def picture(self, tiles: np.ndarray, captions: Sequence[str], bright: np.ndarray) -> np.ndarray:
        """Draw all tiles and their captions.

        Args:
            tiles: The screens, RGB, uint8 [M, height, width, 3].
            captions: The text above each tile, [M]; truncated to the tile's width.
            bright: Whether each tile has full rather than half brightness, bool [M].

        Returns:
            The picture, RGB, uint8 of the layout's shape.
        """
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
    """Render a line of text in white on black, truncated on the right, as uint8 [_CAPTION, width, 3]."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, _CAPTION))
    draw = ImageDraw.Draw(image)
    draw.fontmode = "1"  # no antialiasing, which would use colors of a .gif's palette
    draw.text((2, 1), text, fill="white", font=ImageFont.load_default(_TEXT))
    return np.asarray(image)

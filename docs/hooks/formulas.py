"""Formulas: a block ```math and text between $` and `$ become MathML, which browsers draw without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

_BLOCK = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"\$`([^`\n]+)`\$")


def with_formulas(markdown: str) -> str:
    """Returns a page with its formulas as MathML; `$`x^2`$` is one within a sentence, as GitHub writes it too."""
    blocks = _BLOCK.sub(lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', markdown)
    return _INLINE.sub(lambda found: _mathml(found[1], "inline"), blocks)


def _mathml(latex: str, display: str) -> str:
    return convert(" ".join(latex.split()), display=display)

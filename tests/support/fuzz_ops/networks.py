"""Random networks as texts: small ones, some of which are not possible."""

from __future__ import annotations

from tests.support.fuzz_ops.values import Draw

_ODD_WORDS = ("0", "-1", "nan", "99999999999999999999", "1.5", "", "268435457", "1e300", "dense", "\u00e9")


def networks(draw: Draw) -> list[str]:
    """One to three that see the same and give as many outputs, unless something is wrong."""
    image = draw.chance(0.5)
    dims = [draw.randint(1, 9), draw.randint(1, 9), draw.randint(1, 4)] if image else [draw.randint(1, 9)]
    first = " ".join(["input", draw.choice(("uint8", "float32")), *map(str, dims)])
    outputs = draw.randint(1, 5)
    texts = ["; ".join([first, *_body(draw, image), f"dense {outputs} 0.5"]) for _ in range(draw.choice((1, 1, 2, 3)))]
    if draw.chance(0.1):
        texts[-1] = _damaged(draw, texts[-1])
    if draw.chance(0.02):
        return draw.choice(([], ["x" * 10_000], [";" * 500], [*texts, texts[0] + "; dense 7 1"], [first]))
    return texts


def _body(draw: Draw, image: bool) -> list[str]:
    layers = []
    for _ in range(draw.randrange(6)):
        padding = draw.choice(("same", "same", "valid"))
        windows = f"{draw.randint(1, 4)} {draw.randint(1, 4)} {draw.randint(1, 3)} {padding}"
        plain = ["bias", "relu", "tanh", "silu", "gelu", f"leaky_relu {draw.choice(('0.01', '0', '1'))}", "layer_norm"]
        flat = [f"dense {draw.randint(1, 12)} 1.0", "vbn", f"lstm {draw.randint(1, 5)} 1.0"]
        windowed = [f"conv {draw.randint(1, 5)} {windows} 1.0", f"max_pool {windows}", f"avg_pool {windows}"]
        kinds = draw.choice((plain, plain, windowed, windowed, flat) if image else (plain, flat))
        layers.append(draw.choice(kinds))
        image = image and not layers[-1].startswith(("dense", "lstm"))
    return layers


def _damaged(draw: Draw, text: str) -> str:
    """One word is another, or one layer is missing or there twice."""
    layers = [layer.split() for layer in text.split(";")]
    at = draw.randrange(len(layers))
    if draw.chance(0.6):
        layers[at][draw.randrange(len(layers[at]))] = draw.choice(_ODD_WORDS)
    elif draw.chance(0.5):
        layers.insert(draw.randrange(len(layers) + 1), layers[at])
    else:
        del layers[at]
    return "; ".join(" ".join(words) for words in layers)

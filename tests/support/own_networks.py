"""Networks as users write them."""


def wide(shape, outputs):
    return ["dense 32", "relu", f"dense {outputs}"]


def made():
    """Return a function that no module has under its name."""

    def inner(shape, outputs):
        return wide(shape, outputs)

    return inner

"""Optimizers that a checkpoint holds as pickles, since their class asks for it: see neuroevo.AskTell.

Unpickling one runs whatever it says, so it is sealed by the user's key when it is written, and one without this user's
seal is used only where the user trusts the run.
"""

from __future__ import annotations

import logging

from neuroevo.algorithms.base import State
from neuroevo.system.user_key import NoKeyError, is_signed, sign

log = logging.getLogger("neuroevo")
_PURPOSE = "pickle in a checkpoint"


def seal_of(state: State) -> str | None:
    """Return the seal of an algorithm's state.

    Args:
        state: The state.

    Returns:
        HMAC-SHA-256 in hexadecimal digits; None if it holds no pickle, or there is no key.
    """
    pickled = state.pickle()
    if pickled is None:
        return None
    try:
        return sign(_PURPOSE, pickled)
    except NoKeyError as error:
        log.warning("a checkpoint cannot be sealed as this user's: %s", error)
        return None


def why_not(state: State, seal: object) -> str | None:
    """Why the pickle of a state may not be used without the user's trust.

    Args:
        state: An algorithm's.
        seal: What the checkpoint says seal_of() said.

    Returns:
        The reason, as the end of a sentence; None: it may, or there is no pickle.
    """
    pickled = state.pickle()
    if pickled is None:
        return None
    try:
        if is_signed(_PURPOSE, pickled, seal):
            return None
        reason = "it has no seal of yours"
    except NoKeyError as error:
        reason = f"whether it is yours cannot be known: {error}"
    return (
        f"holds a pickle, which can run any code, and {reason}; if you trust whoever wrote it, say so with --trust (in "
        "Python: trust=True)"
    )

"""Serve the page on the loopback interface until Ctrl-C."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager

import uvicorn

from neuroevo.core.errors import UserError
from neuroevo.inspector.inspection import Inspection
from neuroevo.inspector.server import make_app

_LOOPBACK = "127.0.0.1"


@contextmanager
def served(inspection: Inspection, port: int = 0) -> Iterator[str]:
    """Serve the page from a thread within the block.

    Args:
        inspection: The inspected runs.
        port: The port; 0 selects a free port.

    Yields:
        The page's address, with its token.

    Raises:
        UserError: The port cannot be used.
    """
    with closing(_listening(port)) as listener:
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        # Requests that are pending at shutdown are slow computations or polls, which need not be completed.
        config = uvicorn.Config(
            make_app(inspection, token, port),
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), name="server", daemon=True)
        thread.start()
        try:
            while thread.is_alive() and not server.started:
                time.sleep(0.01)
            yield f"http://{_LOOPBACK}:{port}/{token}/"
        finally:
            server.should_exit = True
            thread.join()


def serve(inspection: Inspection, port: int, browser: bool) -> None:
    """Serve the page until it is interrupted.

    Args:
        inspection: The inspected runs.
        port: The port; 0 selects a free port.
        browser: Whether to open the page in the user's browser.

    Raises:
        UserError: The port cannot be used.
        KeyboardInterrupt: The user pressed Ctrl-C.
    """
    with served(inspection, port) as address:
        count = len(inspection.runs)
        print(f"{count} run{'' if count == 1 else 's'} at {address} (press Ctrl-C to stop)", flush=True)
        if browser and _has_screen():
            webbrowser.open(address)
        threading.Event().wait()


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # reuse the port of a server that just stopped
        listener.bind((_LOOPBACK, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"port {port} is in use, expected a free port; without --port one is selected") from None
        raise UserError(f"port {port} cannot be used: {error.strerror}") from None
    return listener


def _has_screen() -> bool:
    """Return whether a browser can open a window; a text browser would block this terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))

"""The page's web server: access control and routes.

Only this machine can connect, but that includes other websites in its browser. They do not know the token in the
address, and if their domain resolves to this machine (DNS rebinding), the Host header reveals it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neuroevo.core.errors import UserError
from neuroevo.inspector.inspection import Inspection, Missing
from neuroevo.inspector.payload import text
from neuroevo.inspector.plotly import plotly_script

PAGE = Path(__file__).parent / "page"
PLOTLY = "plotly.min.js"
# No external sources. Plotly needs unsafe-eval for its shaders' bindings and unsafe-inline for styles of elements.
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Middleware that rejects requests with a foreign Host header or without the token with status 403.

    Args:
        app: The application that handles accepted requests.
        token: The token, the first part of every path.
        port: The server's port.
    """

    def __init__(self, app: ASGIApp, token: str, port: int):
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        given = scope["path"].split("/")[1].encode() if scope["path"].startswith("/") else b""
        refusal = ""
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            refusal = "the address is not valid for this page, expected the address printed by neuroevo inspect"
        elif not secrets.compare_digest(given, self._token):
            refusal = "the address lacks the token, expected the address printed by neuroevo inspect"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        app = PlainTextResponse(refusal + "\n", status_code=403) if refusal else self._app
        await app(scope, receive, send_with_headers)


def make_app(inspection: Inspection, token: str, port: int) -> Starlette:
    """Make the application.

    Args:
        inspection: The inspected runs.
        token: The token, the first part of every path.
        port: The server's port.

    Raises:
        UserError: The package plotly is incomplete.
    """
    files = {path.name: path for path in PAGE.iterdir()} | {PLOTLY: plotly_script()}

    async def page(request: Request) -> Response:
        return _file(files.get(request.path_params.get("name", "index.html")))

    async def data(request: Request) -> Response:
        try:
            found = await run_in_threadpool(inspection.answer, request.path_params["name"])
        except Missing as error:
            return JSONResponse({"error": str(error)}, status_code=404)
        except (UserError, OSError) as error:  # the page shows the message in place of a plot
            return JSONResponse({"error": str(error)})
        return Response(await run_in_threadpool(text, found), media_type="application/json")

    async def video(request: Request) -> Response:
        return _file(inspection.stage.video(request.path_params["name"]))

    def get(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
        return Route(f"/{token}/{path}", endpoint, methods=["GET"])

    routes = [get("data/{name:path}.json", data), get("videos/{name}", video), get("{name}", page), get("", page)]
    return Starlette(routes=routes, middleware=[Middleware(Guard, token=token, port=port)])


def _file(path: Path | None) -> Response:
    if path is None or not path.is_file():
        return PlainTextResponse("file not found\n", status_code=404)
    return FileResponse(path)

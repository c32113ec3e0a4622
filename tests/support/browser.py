"""Browser for tests: the system's Chromium, driven by Playwright, with its console errors and requests recorded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 300_000  # ms: other tests may have the processors
# WebGL without a graphics card; no services of the browser's maker.
_FLAGS = ["--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic"]
_FLAGS += ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


@dataclass
class Shown:
    """Browser page.

    Attributes:
        page: The Playwright page.
        complaints: Errors in its console, and failed requests.
        hosts: Hosts to which it sent requests.
    """

    page: Any
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def visit(self, address: str, until: str = "all") -> None:
        """Open an address of the inspector and wait for the "page", or for "all" of it."""
        self.page.goto(address)
        expected = ["page", "all"] if until == "page" else ["all"]
        self.page.wait_for_function(f"{expected}.includes(document.documentElement.dataset.ready)")

    def value(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.page.evaluate(script)

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        self.page.wait_for_function(script)


@contextmanager
def started_browser() -> Iterator[Any]:
    """Start the browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


def shown_in(browser: Any, width: int = 1280, scheme: str = "light") -> Shown:
    """Open an empty window."""
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    page.set_default_timeout(PATIENCE)
    shown = Shown(page)
    page.on("request", lambda request: shown.hosts.add(urlsplit(request.url).netloc or urlsplit(request.url).scheme))
    page.on("console", lambda message: message.type in ("error", "warning") and shown.complaints.append(message.text))
    page.on("pageerror", lambda error: shown.complaints.append(str(error)))
    page.on("requestfailed", lambda request: shown.complaints.append(f"{request.url}: {request.failure}"))
    return shown

"""Check that the built site loads no external resources: python tests/house/check_site.py build/site

A page may link to other sites, which a reader follows or not. It may not load a script, a style, a font or a picture
from one. Prints what does, and exits with 1.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}
OUTSIDE = re.compile(r"^(https?:)?//")
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")
RELATIONS = {"canonical", "next", "prev", "edit"}  # of links that name a place and load nothing


class Loads(HTMLParser):
    """Parser that collects the external resources of a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "link" and given.get("rel") in RELATIONS:
            return
        value = given.get(LOADED.get(tag, ""), "") or ""
        if OUTSIDE.match(value):
            self.found.append(f"<{tag}> {value}")


def outside(file: Path) -> list[str]:
    """Return the external resources of a file of the site."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".css":
        return IN_STYLES.findall(text)
    page = Loads()
    page.feed(text)
    return page.found


def main() -> None:
    site = Path(sys.argv[1])
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    wrong = [f"{file.relative_to(site)}: {what}" for file in files for what in outside(file)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if not files:
        sys.exit(f"there is no page in {site}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

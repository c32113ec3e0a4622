"""What MkDocs calls while it builds the site: see mkdocs.yml.

- on_files adds what lies outside docs/: reports, CONTRIBUTING.md, CHANGELOG.md, and each file of the repository that a
  page links to, which the rest of this folder's modules find;
- on_page_markdown puts tables that the code makes, formulas and links in place.
"""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from docs.hooks import outside
from docs.hooks.formulas import with_formulas
from docs.hooks.generated import generated

_SOURCES: dict[str, str] = {}  # of pages of the site that are not in docs/: where each is in the repository


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files outside docs/."""
    for place, path in outside.results().items():
        _add(files, config, place, f"{outside.RESULTS}/{path.name}")
    for path, place in outside.PAGES.items():
        _add(files, config, place, path)
    shown: set[str] = set()
    for file in files.documentation_pages():
        source = _SOURCES.get(file.src_uri, f"docs/{file.src_uri}")
        shown |= outside.with_site_links(file.content_string, source)[1]
    for path in sorted(shown):
        file = File.generated(config, outside.place_of(path), content=outside.page_of_file(path))
        file.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Puts tables, formulas and links in place; a page that shows a file stays as it is."""
    place = page.file.src_uri
    if place.startswith(f"{outside.FILES}/"):
        return markdown
    linked, _shown = outside.with_site_links(markdown, _SOURCES.get(place, f"docs/{place}"))
    return with_formulas(generated(linked))


def _add(files: Files, config: MkDocsConfig, place: str, source: str) -> None:
    _SOURCES[place] = source
    files.append(File.generated(config, place, abs_src_path=str(outside.ROOT / source)))

"""The built documentation, `make docs`, as its readers get it: pages, their texts, links and anchors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"

LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Elements that a browser loads something for, and the attribute that says what."""


@dataclass
class Page:
    """One page: `links` are its hyperlinks, `loads` what a browser fetches with it, `text` what is read."""

    path: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    text: str = ""

    def target(self, link: str) -> tuple[Path, str]:
        """Return the file that a link of this page leads to, and the anchor in it."""
        path, anchor = urldefrag(link)
        found = (self.path.parent / unquote(path)).resolve() if path else self.path
        return (found / "index.html" if path.endswith("/") or found.is_dir() else found), unquote(anchor)


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self._page = page
        self._texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self._page.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        self._hidden += tag in ("script", "style")
        if tag == "a" and "href" in attributes:
            self._page.links.append(attributes["href"])
        if tag in LOADING and LOADING[tag] in attributes and attributes.get("rel") != "canonical":
            self._page.loads.append(attributes[LOADING[tag]])

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._texts.append(data)

    def close(self) -> None:
        super().close()
        self._page.text = "".join(self._texts)


@cache
def pages() -> dict[Path, Page]:
    """Return all pages of the site by their files. It must be built, as `make test-docs` does."""
    files = sorted(SITE.rglob("*.html"))
    if not files:
        pytest.fail("there is no site: run `make docs` first")
    found = {}
    for file in files:
        page = Page(file)
        reader = _Reader(page)
        reader.feed(file.read_text("utf-8"))
        reader.close()
        found[file] = page
    return found


def page_of(source: str) -> Page:
    """Return the page of a source, as `reference/cli.md`."""
    path = SITE / source
    return pages()[
        path.with_name("index.html") if path.stem == "index" else path.with_suffix("") / "index.html"
    ]


def is_external(link: str) -> bool:
    """Return whether a link leads to another host, or is not one to a page."""
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)

"""Pages as a reader of their HTML sees them, and those of exported runs."""

from __future__ import annotations

from html.parser import HTMLParser

from fdstore.client import Store
from fdstore.inspector.web.run_export import RunExport


def export(store: Store, tree: str, *redact: str) -> str:
    """Return the page of a run."""
    return "".join(pieces(store, tree, *redact))


def pieces(store: Store, tree: str, *redact: str) -> list[str]:
    """Return the page of a run, as the pieces in which it is made."""
    run = RunExport(store.prefix, tree, redact)
    for step in run.prepare():
        store.run(step)
    body = [store.run(piece) for piece in run.body()]
    return [run.head(), *body]


class Read(HTMLParser):
    """The tags of a page with their attributes, its ids and links, and its texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")
            if name == "href":
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def words(self) -> str:
        """The texts with a blank between all words."""
        return " ".join(" ".join(self.texts).split())

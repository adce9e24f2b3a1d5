"""What the search field finds beside names of trees: words of runs, and what an id or a URL names."""

from __future__ import annotations

from fdstore.records import Unreadable
from fdstore.store.addresses import MODES, Address
from fdstore.store.views.finding import is_glob
from fdstore.store.views.word_search import WordMatch, exact, search
from fdstore.web.descriptor_url import descriptor_url
from fdstore.web.page import SeeOther, View

SHOWN = 3
"""Places that are shown of one tree."""


async def found_by_words(view: View, query: str, damaged: list[Unreadable]) -> dict[str, list[WordMatch]]:
    """Return where the words of a query are found, by tree: at most `SHOWN` places of each. A pattern such as
    `build-*` is for names alone."""
    found: dict[str, list[WordMatch]] = {}
    if query and not is_glob(query):
        for each in await view.store.run(search(view.prefix, query, damaged=damaged)):
            of_tree = found.setdefault(each.process.partition(".")[0], [])
            if len(of_tree) < SHOWN:
                of_tree.append(each)
    return found


async def go_to_exact(view: View, query: str, names: list[str]) -> None:
    """Raise `SeeOther` if the query is the URL of a content or a process, or the id of a process. The name of
    a tree leads to its page if no other tree is among the `names` that are found."""
    if view.request.url.path != "/" or not query:  # the twins of the page are for programs
        return
    named = await view.store.run(exact(view.prefix, query))
    if isinstance(named, Address):
        raise SeeOther(_content_url(named))
    if named is not None and "." in named:
        raise SeeOther(f"/process/{named}")
    if named is not None and names in ([], [named]):
        raise SeeOther(f"/tree/{named}")


def _content_url(address: Address) -> str:
    if (part := address.part) is None:
        return descriptor_url(address.process, address.fd)
    [name] = (name for name, mode in MODES.items() if mode == part.mode)
    last = part.start + part.count - 1
    place = f"{part.start}-{last}" if part.count > 1 else f"{part.start}"
    return descriptor_url(address.process, address.fd, "", **{name: place})

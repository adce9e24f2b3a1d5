r"""Search runs by the words of their tasks, answers, errors and sources.

The scripts that store these add their words to a sorted set of the tree (`word_places`), all with one score,
so that it is in the order of the words:

    ZRANGE fdstore:{triage}:search:words "[build" "[build\xff" BYLEX LIMIT 0 500

returns where words begin with `build`, in time that depends on how many there are, not on what else is
stored. The trees used last are searched, some dozen in one round trip. A word stays until its tree is
removed, so what is found is looked up: a descriptor may be closed by now. A name is also found by the source
of the text that it meant before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from fdstore.errors import DamagedRecord, InvalidArgument
from fdstore.model.records import Record, Unreadable
from fdstore.store.addresses import SCHEME, Address, parse_uri
from fdstore.store.keys import TreeKeys, in_pieces, is_process, process_keys
from fdstore.store.record_format import replies_of_trees, replies_or_damage, show_bytes, unreadable
from fdstore.store.views.overview import recent_names
from fdstore.store.views.word_excerpts import FoundPlace, read_excerpts
from fdstore.store.word_places import KINDS, Kind, WordPlace, place_of
from fdstore.text.excerpts import WordExcerpt
from fdstore.text.words import query_words
from fdstore.wire.operation import Operation

MAX_TREES = 500
"""Trees that are searched: those used last."""

TREES_AT_ONCE = 50
"""Trees that one round trip searches."""

MAX_PLACES = 500
"""Places of one word that are read of one tree: those of the word itself first, then of longer ones."""

MAX_PROCESSES = 100
"""Processes that one search returns."""

PLACES_OF_ONE = 5
"""Places that are returned of one process."""


class WordMatch(Record, frozen=True, kw_only=True):
    """A process that has the words of a query, with its state and program, and where they are found: in its
    `task`, its `answer`, an `error` (why it ended, or a call or an ask of it failed), or the `source` of its
    descriptor `fd`. `excerpt` is the text around them."""

    process: str
    found_in: Kind
    fd: str | None
    state: str
    program: str | None
    excerpt: WordExcerpt = WordExcerpt()

    @property
    def place(self) -> str:
        """The place for people: `answer of build.3`, or `source of build.3 fd:7`."""
        return f"{self.found_in} of {self.process}" + (f" {self.fd}" if self.fd else "")


class _Candidate(msgspec.Struct, frozen=True):
    """A process, and its places, each with the numbers of those words of the query that it has."""

    process: str
    places: dict[WordPlace, set[int]]


class _Found(msgspec.Struct, frozen=True):
    """A match without its excerpt, and where that is to be read."""

    match: WordMatch
    place: FoundPlace


def search(
    prefix: str,
    query: str,
    *,
    most: int = MAX_PROCESSES,
    damaged: list[Unreadable] | None = None,
) -> Operation[list[WordMatch]]:
    """Return where the words of a query are found: in processes that have all of them, each in any of its
    places, or a longer word that begins so. Those of the tree used last come first; of a process the places
    with most of the words.

    At most `most` processes of the `MAX_TREES` trees used last are returned. One round trip for the names of
    the trees, one for each `TREES_AT_ONCE` of them and one more where something is found, and those of
    `read_excerpts`. A query without words finds nothing. Keys that cannot be read are added to `damaged`.
    """
    words = query_words(query)
    found: list[_Found] = []
    if not words:
        return []
    names = (yield from recent_names(prefix, MAX_TREES)).names
    left = most
    for piece in in_pieces(names, TREES_AT_ONCE):
        trees = [TreeKeys(prefix, name) for name in piece]
        candidates = list((yield from _candidates(trees, words, damaged)))
        while candidates and left > 0:
            some, candidates = candidates[:left], candidates[left:]
            there = yield from _look_up(prefix, some, len(words))
            found += there
            left -= len({each.match.process for each in there})
        if left <= 0:
            break
    excerpts = yield from read_excerpts(prefix, query, [each.place for each in found])
    return [
        msgspec.structs.replace(each.match, excerpt=excerpt)
        for each, excerpt in zip(found, excerpts, strict=True)
    ]


def _candidates(
    trees: list[TreeKeys], words: list[str], damaged: list[Unreadable] | None
) -> Operation[Iterator[_Candidate]]:
    """Return the processes that have all words, tree by tree."""
    replies = yield from replies_of_trees(
        [
            ("ZRANGE", tree.words, start, start + b"\xff", "BYLEX", "LIMIT", 0, MAX_PLACES)
            for tree in trees
            for start in (b"[" + word.encode() for word in words)
        ]
    )
    count = len(words)
    if damaged is not None:
        damaged += [unreadable(reply) for reply in replies if isinstance(reply, DamagedRecord)]
    return (
        candidate
        for number, tree in enumerate(trees)
        for candidate in _in_tree(tree, replies[number * count : (number + 1) * count])
    )


def _in_tree(tree: TreeKeys, replies: list[list[bytes] | DamagedRecord]) -> Iterator[_Candidate]:
    found: dict[str, dict[WordPlace, set[int]]] = {}
    for number, members in enumerate(replies):
        for place in [] if isinstance(members, DamagedRecord) else _places(tree, members):
            found.setdefault(place.process, {}).setdefault(place, set()).add(number)
    for process in sorted(found, key=_order):
        if _have_all(found[process], len(replies)):
            yield _Candidate(process, found[process])


def _have_all(places: dict[WordPlace, set[int]], words: int) -> bool:
    return len(set().union(*places.values())) == words


def _places(tree: TreeKeys, members: list[bytes]) -> Iterator[WordPlace]:
    return (place for member in members if (place := place_of(tree, member)) is not None)


def _order(process: str) -> tuple[int, ...]:
    return tuple(map(int, process.split(".")[1:]))


def _look_up(prefix: str, candidates: list[_Candidate], words: int) -> Operation[list[_Found]]:
    """Return what exists of the candidates, if it has all words. One round trip."""
    keys = [process_keys(prefix, each.process) for each in candidates]
    sources = [[place.fd for place in each.places if place.fd is not None] for each in candidates]
    replies = yield from replies_or_damage(
        [
            *(("HMGET", each.record, "state", "program") for each in keys),
            *(("HMGET", each.fds, *fds) for each, fds in zip(keys, sources, strict=True) if fds),
        ]
    )
    tables = iter(replies[len(keys) :])
    found: list[_Found] = []
    for each, record, fds in zip(candidates, replies[: len(keys)], sources, strict=True):
        contents = next(tables) if fds else []
        if isinstance(record, DamagedRecord) or record[0] is None:
            continue
        held = {} if isinstance(contents, DamagedRecord) else _held(fds, contents)
        places = {place: has for place, has in each.places.items() if place.fd is None or place.fd in held}
        if not _have_all(places, words):
            continue
        state, program = (show_bytes(value or b"") for value in record)
        found += (
            _Found(
                WordMatch(
                    process=each.process,
                    found_in=place.kind,
                    fd=place.fd,
                    state=state,
                    program=program or None,
                ),
                FoundPlace(place, held.get(place.fd or "", b"")),
            )
            for place in _best(places)
        )
    return found


def _best(places: dict[WordPlace, set[int]]) -> list[WordPlace]:
    """Return those places that have most of the words, tasks first."""
    most = max(map(len, places.values()))
    best = [place for place, has in places.items() if len(has) == most]
    return sorted(best, key=lambda place: KINDS.index(place.kind))[:PLACES_OF_ONE]


def _held(fds: list[str], contents: list[bytes | None]) -> dict[str, bytes]:
    return {fd: content for fd, content in zip(fds, contents, strict=True) if content}


def address_in(query: str) -> Address | str | None:
    """Return what a query may name: a content or a part of it by its URL, or a process by its id or URL.

    >>> address_in("fdstore://triage/name:notes/plan.md").fd, address_in("triage.1"), address_in("a word")
    ('name:notes/plan.md', 'triage.1', None)
    """
    process = query.removeprefix(SCHEME).removesuffix("/")
    if is_process(process):
        return process
    with suppress(InvalidArgument):
        return parse_uri(query)
    return None


def exact(prefix: str, query: str) -> Operation[Address | str | None]:
    """Return the content, the part of one, or the process that a query names, if it exists; else None. One
    round trip, or none if it can name none."""
    found = address_in(query)
    if found is None:
        return None
    keys = process_keys(prefix, found if isinstance(found, str) else found.process)
    command = ("EXISTS", keys.record) if isinstance(found, str) else ("HGET", keys.fds, found.fd)
    [there] = yield from replies_or_damage([command])
    return found if there else None

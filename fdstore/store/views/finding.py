"""Find processes and descriptors: by name in all trees, and by words in those used last."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from fnmatch import translate

import msgspec

from fdstore.errors import NotFound
from fdstore.model.records import ProcessRecord, Unreadable
from fdstore.store.addresses import SCHEME
from fdstore.store.keys import TreeKeys, process_keys
from fdstore.store.processes.process_records import record, tree_record
from fdstore.store.record_format import skipping
from fdstore.store.tree_facts import tree_names
from fdstore.store.views.usage import DescriptorUsage, Tell, UsageReport, describe, read_tables
from fdstore.store.views.word_search import WordMatch, exact, search
from fdstore.wire.operation import Operation


class Findings(msgspec.Struct, kw_only=True):
    """Processes by id, descriptors by process and number, what has the words, and the records that could
    not be read."""

    processes: list[ProcessRecord] = []
    descriptors: list[DescriptorUsage] = []
    words: list[WordMatch] = []
    unreadable: list[Unreadable] = []


def is_glob(pattern: str) -> bool:
    """Return whether a pattern is for whole names."""
    return re.search(r"[*?\[]", pattern) is not None


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a test of names: a pattern with `*`, `?` or `[` is a glob for the whole name, any other one a
    part of it. Case is ignored.

    >>> matcher("BUILD")("build.log"), matcher("*.log")("build.log"), matcher("*.log")("build.log.gz")
    (True, True, False)
    """
    if is_glob(pattern):
        whole = re.compile(translate(pattern), re.IGNORECASE)
        return lambda name: whole.match(name) is not None
    part = pattern.casefold()
    return lambda name: part in name.casefold()


def find(prefix: str, pattern: str, tell: Tell = lambda done: None) -> Operation[Findings]:
    """Return the processes whose id or program matches, the descriptors whose name or source does, and what
    else has the words of the pattern (`word_search`), unless it is a glob. Of a URL (`fdstore://triage/fd:3`),
    return that process or descriptor alone.

    Reads the records of all processes and descriptors: some round trips for each tree, and one for each
    process. `tell` is called with the number of trees searched so far."""
    found = Findings()
    if pattern.startswith(SCHEME):
        yield from _find_address(prefix, pattern, found)
        return found
    matches = matcher(pattern)
    for done, name in enumerate((yield from tree_names(prefix, found.unreadable)), 1):
        with skipping(found.unreadable), suppress(NotFound):  # it was just collected
            yield from _find_in_tree(prefix, name, matches, found)
        tell(done)
    if not is_glob(pattern):
        listed = {(each.process, each.fd) for each in found.descriptors}
        by_words = yield from search(prefix, pattern, damaged=found.unreadable)
        found.words = [each for each in by_words if (each.process, each.fd) not in listed]
    return found


def _find_address(prefix: str, url: str, found: Findings) -> Operation[None]:
    address = yield from exact(prefix, url)
    if isinstance(address, str):
        found.processes.append((yield from record(prefix, address)))
    elif address is not None:
        keys, damaged = process_keys(prefix, address.process), UsageReport()
        tables, contents = yield from read_tables(keys.tree, [keys.process], damaged)
        described = describe(keys.process, tables[keys.process], contents)
        found.descriptors += [each for each in described if each.fd == address.fd]
        found.unreadable += damaged.unreadable


def _find_in_tree(prefix: str, name: str, matches: Callable[[str], bool], found: Findings) -> Operation[None]:
    tree = yield from tree_record(prefix, name)
    found.unreadable += tree.unreadable
    found.processes += [
        member for member in tree.members if matches(member.id) or matches(member.program or "")
    ]
    damaged = UsageReport()
    ids = [member.id for member in tree.members]
    tables, contents = yield from read_tables(TreeKeys(prefix, name), ids, damaged)
    found.descriptors += [
        each
        for process, table in tables.items()
        for each in describe(process, table, contents)
        if matches(each.source) or _matches_name(each.fd, matches)
    ]
    found.unreadable += damaged.unreadable


def _matches_name(fd: str, matches: Callable[[str], bool]) -> bool:
    kind, _, name = fd.partition(":")
    return kind != "fd" and (matches(name) or matches(fd))

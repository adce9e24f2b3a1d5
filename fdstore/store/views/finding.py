"""Find processes and descriptors by name, in all trees."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate

import msgspec

from fdstore.errors import NotFound
from fdstore.records import ProcessRecord, Unreadable
from fdstore.store.keys import TreeKeys
from fdstore.store.processes.process_records import tree_names, tree_record
from fdstore.store.record_format import SKIPPABLE, unreadable
from fdstore.store.views.usage import DescriptorUsage, Tell, Usage, describe, read_tables
from fdstore.wire.operation import Operation


class Findings(msgspec.Struct, kw_only=True):
    """Processes by id, descriptors by process and number, and the records that could not be read."""

    processes: list[ProcessRecord] = []
    descriptors: list[DescriptorUsage] = []
    unreadable: list[Unreadable] = []


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a test of names: a pattern with `*`, `?` or `[` is a glob for the whole name, any other one a
    part of it. Case is ignored.

    >>> matcher("BUILD")("build.log"), matcher("*.log")("build.log"), matcher("*.log")("build.log.gz")
    (True, True, False)
    """
    if re.search(r"[*?\[]", pattern):
        whole = re.compile(translate(pattern), re.IGNORECASE)
        return lambda name: whole.match(name) is not None
    part = pattern.casefold()
    return lambda name: part in name.casefold()


def find(prefix: str, pattern: str, tell: Tell = lambda done: None) -> Operation[Findings]:
    """Return the processes whose id or program matches, and the descriptors whose name or source does. Reads
    the records of all processes and descriptors: some round trips for each tree, and one for each process.
    `tell` is called with the number of trees searched so far."""
    matches = matcher(pattern)
    found = Findings()
    for done, name in enumerate((yield from tree_names(prefix, found.unreadable)), 1):
        try:
            yield from _find_in_tree(prefix, name, matches, found)
        except NotFound:
            pass  # it was just collected
        except SKIPPABLE as error:
            found.unreadable.append(unreadable(error))
        tell(done)
    return found


def _find_in_tree(prefix: str, name: str, matches: Callable[[str], bool], found: Findings) -> Operation[None]:
    record = yield from tree_record(prefix, name)
    found.unreadable += record.unreadable
    found.processes += [
        member for member in record.members if matches(member.id) or matches(member.program or "")
    ]
    damaged = Usage()
    ids = [member.id for member in record.members]
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

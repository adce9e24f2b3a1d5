"""The names of objects, and what the record of a content says of its object.

    tier     cold
    where    triage-3-5f0c9b1d2e3a4c5f      process, number, six digits of the store, ten of this upload

The object is at URL/PREFIX/TREE/WHERE. The record is not trusted: a `where` that is not of this content is
never looked up, so it can name no object but the content's own, below the place that the operator set.
"""

from __future__ import annotations

import os
import re

from fdstore.errors import DamagedRecord, quoted
from fdstore.store.keys import ContentKeys, TreeKeys, is_content
from fdstore.store.record_format import show_bytes
from fdstore.wire.operation import Operation
from fdstore.wire.scripts import though_full

COLD = "cold"

_WHERE = re.compile(r"(.+)-([1-9][0-9]{0,15})-[0-9a-f]{16}")


def new_store_id() -> str:
    """Return a new id of a store."""
    return os.urandom(3).hex()


def new_where(content: str, store_id: str) -> str:
    """Return the name of an object for this upload of a content. Stores may share a place: each knows its
    objects by its id in their names."""
    return f"{content.replace('/', '-')}-{store_id}{os.urandom(5).hex()}"


def is_of_store(where: str, store_id: str) -> bool:
    """Return whether this store made an object.

    >>> is_of_store("triage-3-5f0c9b1d2e3a4c5f", "5f0c9b"), is_of_store("triage-3-5f0c9b1d2e3a4c5f", "aaaaaa")
    (True, False)
    """
    return where.rpartition("-")[2].startswith(store_id)


def store_id(prefix: str) -> Operation[str]:
    """Return the id of a store, made by the first call. One round trip, then. Raises `DamagedRecord`."""
    key = TreeKeys(prefix, "").cold_store
    [found] = yield [("GET", key)]
    if found is None:
        yield [though_full(("SET", key, new_store_id(), "NX"))]
        [found] = yield [("GET", key)]
    shown = show_bytes(found or b"")
    if not re.fullmatch(r"[0-9a-f]{6}", shown):
        raise DamagedRecord(key, f"{quoted(shown, 40)} is not the id of a store")
    return shown


def store_id_or_none(prefix: str) -> Operation[str | None]:
    """Return the id of a store, None if it has none: it never moved a content. One round trip."""
    [found] = yield [("GET", TreeKeys(prefix, "").cold_store)]
    return None if found is None else show_bytes(found)


def content_of(tree: TreeKeys, where: str) -> str | None:
    """Return the content whose object has this name, None if it is of no content of the tree.

    >>> content_of(TreeKeys("fdstore", "a-1"), "a-1.2-3-0123456789abcdef")
    'a-1.2/3'
    """
    found = _WHERE.fullmatch(where)
    content = f"{found[1]}/{found[2]}" if found else ""
    return content if is_content(tree, content.encode("utf-8", "replace")) else None


def path_of(tree: TreeKeys, where: str) -> str:
    """Return the path of an object below the place.

    >>> path_of(TreeKeys("fdstore", "triage"), "triage-3-5f0c9b1d2e3a4c5f")
    'fdstore/triage/triage-3-5f0c9b1d2e3a4c5f'
    """
    return f"{folder_of(tree.prefix)}/{tree.tree}/{where}"


def folder_of(prefix: str) -> str:
    """Return the folder of a store's objects: its prefix, in which `.` and `:` of every system are escaped.

    >>> folder_of("fdstore"), folder_of("..")
    ('fdstore', '_2e_2e')
    """
    return re.sub(r"[.:_]", lambda found: f"_{ord(found[0]):02x}", prefix)


def tree_of(keys: ContentKeys) -> TreeKeys:
    """Return the tree of a content, by its keys.

    >>> tree_of(ContentKeys("fdstore:{triage}:triage:fd:3"))
    TreeKeys(prefix='fdstore', tree='triage')
    """
    prefix, _, rest = keys.record.partition(":{")
    return TreeKeys(prefix, rest.partition("}")[0])

"""The names of objects, and what the record of a content says of its object.

    tier     cold
    where    triage-3-5f0c9b1d2e3a4c5f      process, number, and an id of this upload alone

The object is at URL/PREFIX/TREE/WHERE. The record is not trusted: a `where` that is not of this content is
never looked up, so it can name no object but the content's own, below the place that the operator set.
"""

from __future__ import annotations

import os
import re
from typing import Literal

import msgspec

from fdstore.store.keys import ContentKeys, TreeKeys, is_content

COLD = "cold"

_WHERE = re.compile(r"(.+)-([1-9][0-9]{0,15})-[0-9a-f]{16}")


class ColdRecord(msgspec.Struct, frozen=True):
    """The fields of a content's record that say that it is cold."""

    tier: Literal["", "cold"] = ""
    where: str = ""


def new_where(content: str) -> str:
    """Return the name of an object for this upload of a content."""
    return f"{content.replace('/', '-')}-{os.urandom(8).hex()}"


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

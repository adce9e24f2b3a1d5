"""The page of the keys in Redis, from the table at the beginning of `fdstore.store.keys` and from the Structs
that are the schemas of hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from fdstore.model.records import Record
from fdstore.store import keys
from fdstore.store.content_info import CONTENT
from fdstore.store.hashes import Hash
from fdstore.store.processes.process_records import PROCESS
from fdstore.store.tree_facts import TREE
from fdstore.store.views.gauges import TOTALS
from reference import markdown

HASHES: dict[str, Hash[Any]] = {
    "{triage}": TREE,
    "{triage}:triage.1": PROCESS,
    "{triage}:triage:fd:3": CONTENT,
    "totals": TOTALS,
}

INTRODUCTION = """
Every key begins with the prefix of the store (`--prefix`, `$FDSTORE_PREFIX`, else `fdstore`) and a colon.
The table shows the rest, for a tree `triage` with a child `triage.1`. The workers' queue has keys of its
own, which begin with `fdq:PREFIX:`.
"""

DELETION = """
What deletes a key. *collect*: the removal of a whole tree, once it is past its retention (`[limits]
retention_days`), by a worker's sweep or `fdstore gc`, or at any time by `fdstore rm --tree` and
`Store.drop_tree`. *its end*: the process, or the stream, ends. *last release*: the last process that holds
the content closes it, ends or is removed. *commit* and *append*: the operation is complete. *the sweep*:
the next round of a worker that finds it outdated. *expires*: Redis deletes it after that time.
"""


FIELDS = """
Every value is text. A field is read within the bounds of its type; one that is missing or empty has its
default, and one that this version does not know is left as it is. A hash may have more fields, which only
scripts use.
"""


def page() -> str:
    text = (keys.__doc__ or "").split("\n\n")
    closing = [markdown.paragraph(markdown.prose(each)) for each in text[2:]]
    rows = [[f"`{pattern}`", *map(markdown.prose, rest)] for pattern, *rest in table(text[1])]
    shown = markdown.table(["key, after the prefix", "type", "holds", "deleted by"], rows)
    return markdown.page(
        "Keys in Redis",
        [
            *(markdown.paragraphs(INTRODUCTION), shown, markdown.paragraphs(DELETION), *closing),
            *("## Fields of hashes", markdown.paragraphs(FIELDS)),
            *(block for key, schema in HASHES.items() for block in fields(key, schema)),
        ],
    )


def fields(key: str, schema: Hash[Any]) -> Iterator[str]:
    """Yield the blocks of a hash: what its Struct says of the fields, and what each of them holds."""
    yield f"### `{key}`"
    for kind in reversed(schema.kind.__mro__[:-1]):
        if kind.__doc__ and kind.__module__.startswith("fdstore.") and kind is not Record:
            described = (each for each in kind.__doc__.split("\n\n") if not each.lstrip().startswith(">>>"))
            yield from (markdown.paragraph(markdown.prose(each)) for each in described)
    declared = {each.encode_name: each for each in inspect.type_info(schema.kind).fields}
    rows = []
    for each in map(declared.__getitem__, schema.names):
        default = "required" if each.required else "" if each.default in (None, ()) else each.default
        rows.append([f"`{each.encode_name}`", holds(each.type), f"{default}"])
    yield markdown.table(["field", "holds", "default"], rows)


def holds(kind: Any) -> str:
    """Return what the text of a field is, by its type."""
    match kind:
        case inspect.UnionType(types):
            return " or ".join(holds(each) for each in types if not isinstance(each, inspect.NoneType))
        case inspect.Metadata(_, {"description": description}):
            return str(description)
        case inspect.IntType(ge=least):
            return "whole number" if least is None or least < 0 else f"whole number from {least} on"
        case inspect.LiteralType(values):
            return ", ".join(f"`{each}`" for each in values)
        case inspect.StructType(cls):
            return f"JSON: {', '.join(f'`{each}`' for each in cls.__struct_encode_fields__)}"
        case inspect.VarTupleType():
            return "words, separated by blanks"
        case _:
            return "text"


def table(text: str) -> Iterator[list[str]]:
    """Yield the rows of a table in columns: pattern, type, contents, deletion. A row without a type continues
    the one before it.

    >>> list(table("key   type  holds  deleted by\\na:b   hash  much   rm\\n            of it"))
    [['a:b', 'hash', 'much of it', 'rm']]
    """
    head, *lines = text.split("\n")
    starts = [found.start() for found in re.finditer(r"(?:^ *|  )\S", head)]
    starts = [starts[0], *(head.index(word, starts[0]) for word in ("type", "holds", "deleted by"))]
    row: list[str] = []
    for line in lines:
        ends = [*starts[1:], None]
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if not cells[1]:
            row = [f"{first} {second}".strip() for first, second in zip(row, cells, strict=True)]
            continue
        if row:
            yield row
        row = cells
    yield row

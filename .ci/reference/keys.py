"""The page of the keys in Redis, from the table at the beginning of `fdstore.store.keys`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdstore.store import keys
from reference import markdown

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


def page() -> str:
    text = (keys.__doc__ or "").split("\n\n")
    closing = [markdown.paragraph(markdown.prose(each)) for each in text[2:]]
    rows = [[f"`{pattern}`", *map(markdown.prose, rest)] for pattern, *rest in table(text[1])]
    shown = markdown.table(["key, after the prefix", "type", "holds", "deleted by"], rows)
    return markdown.page(
        "Keys in Redis", [markdown.paragraphs(INTRODUCTION), shown, markdown.paragraphs(DELETION), *closing]
    )


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

"""The page of what differs between two texts of a process: `/process/triage/diff?a=fd:1&b=fd:2`.

`a` and `b` may be parts: `fd:1#L1-100`.
"""

from __future__ import annotations

from fdstore.errors import TooLarge
from fdstore.records import Comparison, Descriptor, Record
from fdstore.store.clock import redis_now
from fdstore.store.contents.comparing import MAX_CONTEXT, compare
from fdstore.store.contents.descriptors import stat
from fdstore.store.processes.processes import open_child
from fdstore.store.views.process_window import descriptor_names
from fdstore.text.selection import Selector, parse_request
from fdstore.web.descriptor_url import descriptor_url
from fdstore.web.diff_rows import DiffRow, DiffRows
from fdstore.web.page import Page, View

MAX_ROWS = 2_000
"""Lines of a diff on a page."""

MAX_BYTES = 64_000_000
"""The largest text that a page compares whole."""

CONTEXT = 3


class Side(Record, frozen=True, kw_only=True):
    """One of the texts: as it was asked for, and its descriptor."""

    asked: str
    descriptor: Descriptor


class Diff(Record, frozen=True, kw_only=True):
    """What differs: the numbers of lines of all, and the first rows; `is_cut`: there are more."""

    a: Side
    b: Side
    comparison: Comparison
    rows: list[DiffRow]
    is_cut: bool


class DiffPage(Record, frozen=True, kw_only=True):
    """The texts that were asked for, and what differs; None while one is not named. `others` are descriptors
    of the process."""

    process: str
    a: str
    b: str
    context: int
    others: tuple[str, ...]
    diff: Diff | None
    now_s: float

    @property
    def tree(self) -> str:
        return self.process.partition(".")[0]

    def url(self, side: Side, line: int | None = None) -> str:
        """Return the URL of a text, or of a line of it."""
        url = descriptor_url(self.process, side.descriptor.fd, lines=line)
        return url if line is None else f"{url}#L{line}"


async def load(view: View) -> DiffPage:
    """Load what differs between `a` and `b`, with `context` lines around each change. Raises `NotFound`,
    `InvalidArgument`, `NotText`, `TooLarge`, `PageOutOfRange`, `PositionOutOfRange`."""
    store, process = view.store, view.argument("id")
    a, b = view.query("a"), view.query("b")
    context = view.number("context", CONTEXT, most=MAX_CONTEXT)
    handle = await store.run(open_child(store.prefix, process))
    diff = None
    if a and b:
        selectors = parse_request(a), parse_request(b)
        one, other = [
            Side(asked=str(each), descriptor=await store.run(stat(handle, each.fd))) for each in selectors
        ]
        for side, each in zip((one, other), selectors, strict=True):
            _check_size(side, each)
        found = DiffRows()
        async with view.inspector.comparing:
            comparison = await store.run(
                compare(handle, *selectors, context=context, write=found.feed, most_lines=MAX_ROWS)
            )
        shown = sum(row.kind in ("removed", "added") for row in found.rows)
        diff = Diff(
            a=one,
            b=other,
            comparison=comparison,
            rows=found.rows,
            is_cut=shown < comparison.removed + comparison.added,
        )
    return DiffPage(
        process=process,
        a=a,
        b=b,
        context=context,
        others=await store.run(descriptor_names(handle.keys)),
        diff=diff,
        now_s=await store.run(redis_now()),
    )


def _check_size(side: Side, selector: Selector) -> None:
    if selector.part is None and side.descriptor.bytes > MAX_BYTES:
        advice = f"compare parts, such as {side.descriptor.fd}#L1-200000, or use `fdstore diff`"
        raise TooLarge(side.asked, side.descriptor.bytes, MAX_BYTES, advice, "bytes")


PAGES = [Page("/process/{id}/diff", "diff.html", load, timeout_s=20.0)]

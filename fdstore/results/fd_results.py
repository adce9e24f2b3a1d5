"""Render stored texts as `fd_result`s: what is shown of them, and how much.

A text of at most `whole_chars` characters is shown whole. A longer one of a known kind (JSON, a log, a diff:
see `text.previews`) is described. Of any other the first page and the end are shown, exactly. `Display`
changes all three. A text that is still in memory costs no round trip; of
one that is in the store, only its first page and its end are read, whatever its size.
"""

from __future__ import annotations

from typing import NamedTuple

from fdstore.elements.build import Rendered
from fdstore.elements.render import Head, fd_result, fd_result_of_bytes
from fdstore.elements.stored_message import Shown
from fdstore.errors import NotText
from fdstore.model.records import Descriptor, Slice
from fdstore.results.context import Context
from fdstore.results.tool_policy import PreviewMode, ToolPolicy
from fdstore.store.contents import descriptors, reading
from fdstore.text.layout import tail_of
from fdstore.text.paging import count_lines
from fdstore.text.selection import Part
from fdstore.text.tokens import estimate_by_parts, spread_parts
from fdstore.wire.operation import Operation

KIND_CHARS = 2400
"""The size of the preview of a text of a known kind, with its tail. Shorter texts are shown as they are."""

END_CHARS = 4000
"""The characters at the end of a stored text that are read to find its kind."""

TAIL_CHARS = 400
"""The characters of the end that are shown after the first page."""

ONLY_TAIL_CHARS = 2000
"""The characters of the end that are shown where nothing else is."""

TOKEN_SAMPLE_CHARS = 5000
"""The characters by which the tokens of a text are estimated."""


class Display(NamedTuple):
    """The form in which a stored text is shown: its kind if it is known, else head and tail ("auto"), or
    these parts of it, together at most `chars` (None: a page of the head, the usual tail). `may_be_whole`:
    all of it, if it has at most `whole_chars`."""

    preview: PreviewMode = "auto"
    chars: int | None = None
    may_be_whole: bool = True


DEFAULT = Display()


def display_of(policy: ToolPolicy) -> Display:
    """Return what is shown of the results of a tool. A preview that was chosen is exact."""
    return Display(
        policy.preview or "auto",
        policy.preview_chars,
        may_be_whole=policy.preview in (None, "auto") and policy.preview_chars is None,
    )


class _Ends(NamedTuple):
    """A stored text as far as it is known: its first page, its beginning and its end (either may be all of
    it; the end is one character longer than needed, to see whether its tail begins a line), the number of its
    last line."""

    descriptor: Descriptor
    first: Slice
    head: str
    end: str
    last_line: int


def render_fd(
    context: Context, fd: str, display: Display = DEFAULT, first: Slice | None = None
) -> Operation[Rendered]:
    """Render a descriptor, of which the first page may have been read, as an `fd_result`, in two or three
    round trips whatever its size."""
    try:
        first = first or (yield from reading.read_page(context.handle, fd, 1))
    except NotText:
        descriptor = yield from _descriptor(context, fd)
        return fd_result_of_bytes(descriptor, context.stored_message(descriptor))
    descriptor = yield from _descriptor(context, fd)
    if _is_whole(context, descriptor, display):
        text = first.text
        if descriptor.pages > 1:
            text = (yield from reading.read_all(context.handle, fd)).text
        return _render(context, _Ends(descriptor, first, text, text, descriptor.lines), display)
    end, last_line = first.text, descriptor.lines
    if descriptor.pages > 1:
        wanted = END_CHARS if _room(descriptor, display) else TAIL_CHARS
        if display.preview in ("tail", "both"):
            wanted = max(wanted, display.chars or ONLY_TAIL_CHARS)
        count = min(wanted + 1, descriptor.chars)
        part = Part("char", descriptor.chars - count + 1, count)
        tail = yield from reading.read(context.handle, fd, part)
        end, last_line = tail.text, int(tail.lines.rpartition("-")[2])
    return _render(context, _Ends(descriptor, first, first.text, end, last_line), display)


def render_stored(
    context: Context, descriptor: Descriptor, text: str, display: Display = DEFAULT
) -> Rendered:
    """As `render_fd`, for a text in memory that was stored as `descriptor`."""
    first = reading.first_page_of(descriptor, text)
    return _render(context, _Ends(descriptor, first, text, text, descriptor.lines), display)


def _descriptor(context: Context, fd: str) -> Operation[Descriptor]:
    known = context.handle.known(fd)
    if known is not None:
        return known.descriptor
    return (yield from descriptors.stat(context.handle, fd))


def _room(d: Descriptor, display: Display) -> int:
    """Return the size of a description of a text; 0 if none can be shorter than what is shown otherwise."""
    room = display.chars or KIND_CHARS
    is_cut = d.pages > 1 or display.chars is not None
    return room if display.preview == "auto" and d.state == "sealed" and is_cut and d.chars > room else 0


def _is_whole(context: Context, d: Descriptor, display: Display) -> bool:
    """Return whether all of a text is shown."""
    return display.may_be_whole and d.state == "sealed" and d.chars <= context.config.whole_limit


def _render(context: Context, ends: _Ends, display: Display) -> Rendered:
    d, first = ends.descriptor, ends.first
    tokens = _tokens(ends)
    if _is_whole(context, d, display):
        whole = Head(text=ends.head, lines=f"1-{d.lines}" if d.lines else "0-0", truncated=False)
        return fd_result(d, whole, None, context.stored_message(d, shows="all"), tokens)
    room = _room(d, display)
    if room and ends.last_line == d.lines:
        # imported here, since most programs store nothing that is rendered
        from fdstore.text.previews import preview_of, sample_ends, sample_text

        if len(ends.head) == d.chars:
            sample = sample_text(ends.head, d.lines)
        else:
            sample = sample_ends(ends.head, ends.end, d.chars, d.lines)
        found = preview_of(sample, room)
        if found is not None:
            tail = _tail(ends, found.tail_chars, found.tail_after)
            message = context.stored_message(d, shows="part")
            return fd_result(d, found, tail, message, tokens)
    head_chars, tail_chars = _chars(d, display)
    if head_chars is None and len(first.text) > context.config.max_read_chars:
        head_chars = context.config.max_read_chars  # pages may have any size
    head: Head | Slice | None = None
    shows: Shown = "part"
    if head_chars is None:
        head, shows = first, "first page"
    elif head_chars:
        head = _head(ends, head_chars)
        shows = "first page" if len(head.text) >= len(first.text) else "part"
    return fd_result(d, head, _tail(ends, tail_chars), context.stored_message(d, shows=shows), tokens)


def _chars(d: Descriptor, display: Display) -> tuple[int | None, int]:
    """Return how many characters of the head (None: its first page) and of the tail are shown."""
    chars = display.chars
    match display.preview:
        case _ if chars is not None and d.chars <= chars:
            return chars, 0
        case "head":
            return chars, 0
        case "tail":
            return 0, chars or ONLY_TAIL_CHARS
        case "both" if chars is not None:
            return chars - chars // 2, chars // 2
        case _ if chars is not None:
            tail = min(TAIL_CHARS, chars // 4)
            return chars - tail, tail
        case _:
            return None, TAIL_CHARS if d.pages > 1 else 0


def _head(ends: _Ends, chars: int) -> Head:
    """Return at most `chars` characters of the beginning, cut at a line end where possible."""
    d, text = ends.descriptor, ends.head[:chars]
    if len(text) < d.chars:
        text = text[: text.rfind("\n") + 1] or text
    lines = count_lines(text)
    is_cut = len(text) < d.chars or d.state == "open"
    return Head(
        text=text,
        lines=f"1-{lines}" if text else "0-0",
        truncated=bool(text) and is_cut and not text.endswith("\n"),
    )


def _tail(ends: _Ends, chars: int, after: int = 0) -> str | None:
    """Return at most `chars` characters of the end, cut at a line where possible, without the lines up to
    `after`; None if none are left."""
    if not chars:
        return None
    text = tail_of(ends.end[-chars - 1 :], chars)
    shown = min(count_lines(text), ends.last_line - after)
    if shown <= 0:
        return None
    return text.split("\n", count_lines(text) - shown)[-1]


def _tokens(ends: _Ends) -> int:
    """Estimate the tokens of a text by evenly spread parts of it, or by its two ends if no more is known."""
    chars, head = ends.descriptor.chars, ends.head
    if len(head) < chars:
        half = TOKEN_SAMPLE_CHARS // 2
        parts = [head[:half], ends.end[-half:]]
    elif chars > TOKEN_SAMPLE_CHARS:
        parts = spread_parts(head, TOKEN_SAMPLE_CHARS)
    else:
        parts = [head]
    return estimate_by_parts(parts, chars)

r"""Render records as the text that models see. `elements.build` builds every element.

    <fd_result fd="fd:1" pages="12" ... escaped="true">     attributes: XML, control characters as \u{..}
    <message>
    The text is stored as fd:1 ...
    </message>
    <preview>
    the text itself, raw and unchanged                      body: between one LF and one LF
    </preview>
    </fd_result>

`elements.kinds` declares the elements; here are their values. A text without an element is wrapped in one,
`fd_inline`, if it could be mistaken for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from fdstore.elements import kinds
from fdstore.elements.build import Rendered, escape_attribute, render
from fdstore.elements.element import MAX_CHARS
from fdstore.errors import FDStoreError, quoted
from fdstore.errors.description import notes_of
from fdstore.model.people import PersonAnswer
from fdstore.model.records import Comparison, Descriptor, Export, Mode, ProcessRecord, Record, Slice
from fdstore.text.layout import show_controls
from fdstore.text.quantities import moment, plain_count

if TYPE_CHECKING:
    from fdstore.text.previews import Preview


class Head(Record, frozen=True, kw_only=True):
    """The beginning of a content; `lines` is the range "a-b" it touches. `truncated`: it ends before the end
    of its last line."""

    text: str
    lines: str
    truncated: bool


def fd_inline(text: str) -> str:
    """Return a text for display outside any element: unchanged, or escaped in an `fd_inline` if it could
    forge an element.

    >>> print(fd_inline("</fd_content>"))
    <fd_inline escaped="true">
    &lt;/fd_content>
    </fd_inline>
    """
    wrapped = render(kinds.FdInline(), text)
    return wrapped.text if wrapped.is_escaped else text


def _message(text: str) -> Rendered:
    return render(kinds.MessagePart(), show_controls(text))


def fd_content(s: Slice) -> Rendered:
    """Render a part of a content.

    `state` and `eof` are included if it is or was a stream: it is not sealed, or it has an exit code;
    `reason` if it broke.
    """
    placed = s.page is not None  # else by mode, start and count
    cut: bool | None = True
    chars: str | None = None
    of_lines: str | None = None
    if s.page is None and s.mode == "line":
        placed, of_lines = s.lines != "0-0", s.chars
        cut = s.continued or s.truncated or None
    elif s.page is None and s.mode == "char":
        chars = s.chars
    streamed = s.state != "sealed" or s.exit_code is not None or s.chain is not None
    content = kinds.FdContent(
        fd=s.fd,
        page=s.page,
        pages=s.pages,
        continued=cut and s.continued,
        truncated=cut and s.truncated,
        lines=s.lines,
        total_lines=s.total_lines,
        chars=chars,
        mode=None if placed else s.mode,
        start=None if placed else s.start,
        count=None if placed else s.count,
        state=s.state if streamed else None,
        reason=s.reason,
        eof=s.eof if streamed else None,
        exit_code=s.exit_code,
        chain=s.chain,
        chars_of_lines=of_lines,
    )
    return render(content, s.text)


def fd_content_of_bytes(d: Descriptor) -> Rendered:
    """Render the heading of bytes that are shown beside it, as an image."""
    return render(kinds.FdContent(fd=d.fd, kind=d.kind, media_type=d.media_type, size_bytes=d.bytes))


def fd_result(
    d: Descriptor, head: Head | Slice | Preview | None, tail: str | None, message: str, tokens: int
) -> Rendered:
    """Render a stored text: its beginning or what describes it, its last lines, and about how many tokens it
    has.

    Without a head, `truncated` and `lines` are left out. `message`: `stored_message`.
    """
    children = [_message(message)]
    shown: Head | Slice | None = None
    if isinstance(head, (Head, Slice)):
        shown = head
        children.append(render(kinds.PreviewPart(), head.text))
    elif head is not None:
        children.append(render(kinds.PreviewPart(kind=head.kind, of=head.of), head.text))
    if tail is not None:
        children.append(render(kinds.TailPart(), tail))
    result = kinds.FdResult(
        fd=d.fd,
        pages=d.pages,
        truncated=None if shown is None else shown.truncated,
        lines=None if shown is None else shown.lines,
        total_lines=d.lines,
        total_chars=d.chars,
        source=d.source,
        state=None if d.state == "sealed" else d.state,
        tokens=_about(tokens),
    )
    return render(result, children=children)


def _about(count: int) -> int:
    """Return an estimate with two digits."""
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return round(count / unit) * unit


def fd_result_of_bytes(d: Descriptor, message: str) -> Rendered:
    """Render stored bytes, without a preview. `message`: `stored_message`."""
    result = kinds.FdResult(
        fd=d.fd,
        source=d.source,
        state=None if d.state == "sealed" else d.state,
        kind=d.kind,
        media_type=d.media_type,
        size_bytes=d.bytes,
    )
    return render(result, children=[_message(message)])


def fd_extraction(
    source_fd: str,
    new: Descriptor,
    mode: Mode | Literal["search"],
    start: int | None = None,
    count: int | None = None,
    *,
    position: Literal["all"] | None = None,
    matches: int | None = None,
    tools: frozenset[str] = frozenset(),
) -> Rendered:
    """Render a new descriptor of a part: `start` and `count` in units of `mode`, or `position="all"`. With
    mode "search" it holds the matching lines, `matches` in number, and `start` and `count` are the lines
    searched."""
    what = "a copy of all of" if position else "a part of"
    if matches is not None:
        what = f"the {plain_count(matches, 'match', 'matches')} of a search in"
    size = plain_count(new.chars, "character")
    offer = f' Read it with read_fd(fd="{new.fd}").' if "read_fd" in tools else ""
    extraction = kinds.FdExtraction(
        source_fd=source_fd,
        new_fd=new.fd,
        mode=mode,
        start=None if position else start,
        count=None if position else count,
        position=position,
        content_size=new.chars,
    )
    return render(extraction, children=[_message(f"{new.fd} holds {what} {source_fd} ({size}).{offer}")])


def fd_diff(found: Comparison, diff: str) -> Rendered:
    """Render the unified diff of two texts, or that they are equal."""
    body = f"{found.a} and {found.b} are equal." if found.is_equal else diff.removesuffix("\n")
    return render(kinds.FdDiff(a=found.a, b=found.b, removed=found.removed, added=found.added), body)


def fd_list(
    descriptors: Iterable[Descriptor],
    total: int,
    next: int | None = None,
    read: Mapping[str, int] | None = None,
    *,
    process: str = "",
) -> Rendered:
    """Render one line for each descriptor; `total` counts all, `next` is the start of the next page, `read`
    is how many pages of each were read, where that is known. `process` is the reader, which is not named as
    the one that made a descriptor."""
    known = {} if read is None else read
    lines = [fd_list_line(d, known.get(d.fd), process=process) for d in descriptors]
    return render(kinds.FdList(count=len(lines), total=total, next=next), "\n".join(lines))


def fd_list_line(d: Descriptor, pages_read: int | None = None, *, process: str = "") -> str:
    """Render the line of one descriptor in an `fd_list` of this process."""
    return (
        f"{escape_attribute(d.fd)} {d.state} {_sizes(d)}"
        + ("" if pages_read is None else f' read="{pages_read}/{d.pages}"')
        + f' source="{escape_attribute(d.source)}"'
        + ("" if d.producer == process else f' producer="{escape_attribute(d.producer)}"')
        + ("" if d.reason is None else f' reason="{escape_attribute(d.reason)}"')
    )


def _sizes(d: Descriptor) -> str:
    if d.kind == "bytes":
        return f'kind=bytes media_type="{escape_attribute(d.media_type)}" size_bytes={d.bytes}'
    return f"chars={d.chars} lines={d.lines} pages={d.pages}"


def fd_file_result(export: Export, create: bool, exist_ok: bool) -> Rendered:
    """Render a finished export with its options."""
    done = "written" if export.mode == "write" else "appended"
    is_text = export.kind == "text"
    size = f" ({plain_count(export.char_count, 'character')})" if is_text else ""
    said = f"{export.fd}{size} was {done} to {quoted(export.file_path, 200)}."
    result = kinds.FdFileResult(
        fd=export.fd,
        file_path=export.file_path,
        mode=export.mode,
        create=create,
        exist_ok=exist_ok,
        kind=None if is_text else export.kind,
        char_count=export.char_count if is_text else None,
        size_bytes=export.size_bytes,
    )
    return render(result, children=[_message(said)])


def fd_write(d: Descriptor, chars: int, message: str) -> Rendered:
    """Render a write of `chars` characters to a content, as it is now."""
    write = kinds.FdWrite(fd=d.fd, chars=chars, total_chars=d.chars, state=d.state)
    return render(write, children=[_message(message)])


def fd_close(fd: str) -> Rendered:
    """Render the closing of a descriptor."""
    said = f"{fd} is closed and can no longer be read here."
    return render(kinds.FdClose(fd=fd), children=[_message(said)])


def process_result(
    record: ProcessRecord,
    answer: str | None = None,
    result: Rendered | None = None,
    *,
    in_fd: str | None = None,
) -> Rendered:
    """Render a process, its outputs, and its result: `answer` as text, or `result`, the `fd_result` of a
    large answer; with neither, as for a pipeline, an empty tag."""
    if answer is not None and result is not None:
        raise TypeError("process_result takes an answer or a result, not both")
    outputs = record.outputs
    process = kinds.ProcessResult(
        process=record.id,
        program=record.program,
        state=record.state,
        exit_code=record.exit_code,
        reason=record.reason,
        fd=outputs[0] if outputs else None,
        stderr_fd=outputs[1] if len(outputs) > 1 else None,
        tee_fds=" ".join(outputs[2:]) or None,
        in_fd=in_fd,
    )
    return render(process, answer, () if result is None else (result,))


def python_result(text: str, *, calls: int, seconds: float) -> Rendered:
    """Render what code of run_python printed and the value of its last expression, with the number of its
    calls and its own processor time."""
    return render(kinds.PythonResult(calls=calls, seconds=round(float(seconds), 1)), text)


def person_answer(
    answer: PersonAnswer,
    number: int,
    body: str | None = None,
    result: Rendered | None = None,
    *,
    tool: str = "",
    is_shown: bool = True,
) -> Rendered:
    """Render what a person answered to the question with this number: with a text, or with `result`, the
    `fd_result` of a long one. `tool` is the tool that waited for approval."""
    reply = kinds.PersonReply(
        who=answer.by or None,
        when=moment(answer.at_ms / 1000) if answer.at_ms and answer.how == "answer" else None,
        choice=answer.choice,
        approved=answer.approved,
        changed=answer.is_changed or None,
        tool=tool,
        question=number,
        door=answer.door,
        is_shown=is_shown,
        said=show_controls((answer.text or answer.reason)[:MAX_CHARS], keep=""),
    )
    return render(reply, body, () if result is None else (result,))


def fd_error(error: FDStoreError, fd: str | None = None, max_chars: int | None = None) -> Rendered:
    """Render an error with its message and its notes, of which at most `max_chars` are shown."""
    said = "\n".join([str(error), *notes_of(error)])
    if max_chars is not None and len(said) > max_chars:
        said = f"{said[:max_chars]}... ({len(said) - max_chars} characters more)"
    found = kinds.FdError(type=error.type, fd=fd, message=show_controls(said))
    return render(found, children=[_message(said)])

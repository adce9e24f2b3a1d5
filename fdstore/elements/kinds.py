"""All elements: what each is, its attributes with their meaning, and its words for people.

The reference page, the look-alikes that no body may contain, the facts of results, and the log and the cards
of the inspector follow from these declarations. `render` knows the values.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from fdstore.elements.element import Element, Mark
from fdstore.model.lifecycle import ContentState, ProcessState
from fdstore.model.records import ContentKind, Mode
from fdstore.text.quantities import format_count

Interval = tuple[int, int]
"""The first and the last number of a run, 1-based."""

_INTERVAL = re.compile(r"([0-9]{1,16})-([0-9]{1,16})")

Fd = Annotated[str, Meta(description="the descriptor")]
Pages = Annotated[int | None, Meta(description="pages of the whole text")]
Truncated = Annotated[bool | None, Meta(description="whether it ends before the end of a line")]
Lines = Annotated[str | None, Meta(description="the lines shown, `first-last`; `0-0` if there are none")]
TotalLines = Annotated[int | None, Meta(title="lines in all", description="lines of the whole text")]
StreamState = Annotated[
    ContentState | None, Meta(title="state", description="of a stream: `open`, `sealed` or `broken`")
]
Kind = Annotated[ContentKind | None, Meta(description="`bytes` for what is not text")]
MediaType = Annotated[str | None, Mark.FOREIGN, Meta(description="of bytes, such as `image/png`")]
SizeBytes = Annotated[int | None, Meta(description="bytes of the whole content")]
Start = Annotated[int | None, Meta(description="the first unit")]
Count = Annotated[int | None, Meta(description="how many units from `start` on")]
Success = Annotated[bool, Meta(description="always true; a failure is an `fd_error`")]


class FdResult(Element, frozen=True, kw_only=True):
    """A long text that was stored: the result of a tool, an input, the answer of another agent.

    `shown_chars` is the length of the element, so `chars` less those were kept out of the context. `block` is
    the position of the content block with the element, from 0.
    """

    name: ClassVar = "fd_result"
    holds: ClassVar = "elements"
    body: ClassVar = (
        "`<message>`: in the first of a conversation how to read on with the tools at hand, in later ones "
        "that it is stored. `<preview>`: the first page, or what describes a text of a known kind (`kind`, "
        "`of`: JSON, a table, a log, a diff, a traceback). `<tail>`: the last lines, if there is more than "
        "one page. Bytes have the message alone."
    )

    fd: Fd
    pages: Pages = None
    truncated: Truncated = None
    lines: Lines = None
    total_lines: TotalLines = None
    total_chars: Annotated[int | None, Meta(description="characters of the whole text")] = None
    source: Annotated[
        str | None, Mark.FOREIGN, Meta(title="name", description="where the content comes from")
    ] = None
    state: StreamState = None
    tokens: Annotated[
        int | None,
        Mark.ESTIMATE,
        Meta(title="tokens", description="about how many tokens the whole text has"),
    ] = None
    kind: Kind = None
    media_type: MediaType = None
    size_bytes: SizeBytes = None
    shown_chars: int = 0
    block: int = 0

    @property
    def chars(self) -> int:
        """The characters of the text; 0 of bytes."""
        return self.total_chars or 0

    def words(self) -> list[str]:
        if self.kind == "bytes":
            size = format_count(self.size_bytes or 0, "byte")
            return [f"{self.fd}, stored: {size} of {self.media_type or ''}"]
        size = format_count(self.chars, "character")
        return [f"{self.fd}, stored: {format_count(self.pages or 0, 'page')}", size]

    def kept(self, shown_chars: int) -> FdResult:
        return msgspec.structs.replace(super().kept(shown_chars), shown_chars=shown_chars)


class FdContent(Element, frozen=True, kw_only=True):
    """A part that was read: a page, all pages, or lines or characters.

    Each place is said once: of lines by `lines`, of a page by `page`, of anything else by `mode`, `start` and
    `count`. `chars_of_lines` are the characters of lines.
    """

    name: ClassVar = "fd_content"
    body: ClassVar = (
        "The text. For an image or a PDF the element is empty, and the content block of it follows."
    )

    fd: Fd
    page: Annotated[
        int | Literal["all"] | None,
        Meta(description="the number of the page, if it is a single one; `all` for the whole text"),
    ] = None
    pages: Pages = None
    continued: Annotated[
        bool | None,
        Meta(
            description="whether it begins in the middle of a line; of lines this and the next stand only if "
            "one is true"
        ),
    ] = None
    truncated: Truncated = None
    lines: Lines = None
    total_lines: TotalLines = None
    chars: Annotated[
        str | None, Meta(description="the characters shown, `first-last`, where characters were asked for")
    ] = None
    mode: Annotated[
        Mode | None, Meta(description="the unit of `start` and `count`: `page`, `line` or `char`")
    ] = None
    start: Start = None
    count: Count = None
    state: StreamState = None
    reason: Annotated[str | None, Mark.FOREIGN, Meta(description="why the stream broke")] = None
    eof: Annotated[
        bool | None,
        Meta(description="whether nothing follows: the stream is complete, and this reaches its end"),
    ] = None
    exit_code: Annotated[
        int | None, Meta(title="exit code", description="of the last command of the pipeline that wrote it")
    ] = None
    chain: Annotated[str | None, Meta(description="how the stages of a pipeline ended")] = None
    kind: Kind = None
    media_type: MediaType = None
    size_bytes: SizeBytes = None
    chars_of_lines: str | None = None

    @property
    def whole_pages(self) -> Interval | None:
        """The pages that it shows; None if it shows lines or characters of several, or a picture.

        >>> FdContent(fd="fd:1", page=3, pages=9).whole_pages, FdContent(fd="fd:1", pages=1).whole_pages
        ((3, 3), (1, 1))
        """
        if self.pages is not None and (self.page == "all" or self.pages == 1):
            return 1, self.pages
        if self.page is None and self.mode == "page" and self.start and self.count:
            return self.start, self.start + self.count - 1
        return None if self.page is None or self.page == "all" else (self.page, self.page)

    @property
    def char_range(self) -> Interval | None:
        """The characters that it shows, if it shows lines or characters; None if there are none."""
        found = _INTERVAL.fullmatch(self.chars or self.chars_of_lines or "")
        if self.page is not None or self.mode == "page" or found is None:
            return None
        first, last = int(found[1]), int(found[2])
        return (first, last) if 0 < first <= last else None

    def words(self) -> list[str]:
        page = "" if self.page is None else f"page {self.page} of {self.pages or 0}"
        return [self.fd, page, f"lines {self.lines}" if self.lines else "", self.media_type or ""]


class FdExtraction(Element, frozen=True, kw_only=True):
    """A part that was stored as a new descriptor."""

    name: ClassVar = "fd_extraction"
    holds: ClassVar = "elements"
    body: ClassVar = "`<message>`; never the text."

    source_fd: Annotated[str, Meta(description="the descriptor that the part was taken from")]
    new_fd: Annotated[str, Meta(description="the new descriptor")]
    mode: Annotated[
        Mode | Literal["search"] | None,
        Meta(description="the unit of `start` and `count`; `search`: the new descriptor holds hits"),
    ] = None
    start: Start = None
    count: Count = None
    position: Annotated[Literal["all"] | None, Meta(description="`all` for a copy of everything")] = None
    content_size: Annotated[int, Meta(description="characters of the new descriptor")] = 0

    @property
    def fds(self) -> tuple[str, ...]:
        return (self.new_fd,)

    def words(self) -> list[str]:
        what = "all of" if self.position else "a part of"
        what = "hits of a search in" if self.mode == "search" else what
        return [self.new_fd, f"{what} {self.source_fd}", format_count(self.content_size, "character")]


class FdSearch(Element, frozen=True, kw_only=True):
    """The result of a search."""

    name: ClassVar = "fd_search"
    body: ClassVar = (
        "Lines as `grep -n` prints them: `120:a match`, `121-context`, `--` between groups. A line of more "
        "than 400 characters is cut around the match, and says so; if it is very long, the last line of the "
        "body names the parts to read and search next. Without a match it may say what there is instead."
    )

    fd: Fd
    pattern: Annotated[str, Mark.FOREIGN, Meta(description="as in the call")] = ""
    matches: Annotated[int, Meta(description="lines that match in the whole range")] = 0
    hits: Annotated[
        str | None,
        Meta(
            title="hits",
            description="matches in these lines, if a line has several; `50000+` if there are more",
        ),
    ] = None
    shown: Annotated[int | None, Meta(title="hits shown", description="matches shown")] = None
    lines_searched: Annotated[int | None, Meta(title="lines searched", description="lines in the range")] = (
        None
    )
    more: Annotated[str | None, Meta(title="goes on at", description="the part that is left to search")] = (
        None
    )

    def words(self) -> list[str]:
        hits = f"hits {self.hits}" if self.hits else ""
        return [self.fd, f"pattern {self.pattern}", f"matches {self.matches}", hits]


class FdDiff(Element, frozen=True, kw_only=True):
    """What differs between two texts; a long diff is an `fd_result`."""

    name: ClassVar = "fd_diff"
    body: ClassVar = (
        "The diff in the unified format, without the line feed at its end, or that the texts are equal."
    )

    a: Annotated[str, Meta(description="the old text, or part of it")]
    b: Annotated[str, Meta(description="the new one")]
    removed: Annotated[int, Meta(description="lines of `a` that `b` does not have")] = 0
    added: Annotated[int, Meta(description="lines that `b` has instead of them")] = 0

    @property
    def fds(self) -> tuple[str, ...]:
        return self.a.partition("#")[0], self.b.partition("#")[0]

    def words(self) -> list[str]:
        return [f"{self.a} to {self.b}", f"+{self.added} -{self.removed} lines"]


class FdList(Element, frozen=True, kw_only=True):
    """The descriptors of the process."""

    name: ClassVar = "fd_list"
    body: ClassVar = (
        "A line for each: id, state, sizes, `read` (pages read of all, if that is known), source, the "
        "process that made it if it is another one, the reason if it broke."
    )

    count: Annotated[int | None, Meta(title="listed", description="lines of this list")] = None
    total: Annotated[int, Meta(description="descriptors in all")] = 0
    next: Annotated[
        int | None, Meta(title="goes on at", description="`start` of the next call of `list_fds`")
    ] = None

    def words(self) -> list[str]:
        return [f"total {self.total}"]


class FdFileResult(Element, frozen=True, kw_only=True):
    """A file that was written."""

    name: ClassVar = "fd_file_result"
    holds: ClassVar = "elements"
    body: ClassVar = "`<message>`."

    fd: Fd
    file_path: Annotated[str, Mark.FOREIGN, Meta(title="file", description="as in the call")] = ""
    mode: Annotated[Literal["write", "append"], Meta(description="`write` or `append`")] = "write"
    create: Annotated[bool | None, Meta(description="as in the call")] = None
    exist_ok: Annotated[bool | None, Meta(description="as in the call")] = None
    success: Success = True
    kind: Kind = None
    char_count: Annotated[int | None, Meta(description="characters written by this call")] = None
    size_bytes: Annotated[int, Meta(description="bytes of the file afterwards")] = 0

    def words(self) -> list[str]:
        done = "appended to" if self.mode == "append" else "written to"
        return [f"{self.fd} {done} {self.file_path}", format_count(self.size_bytes, "byte")]


class FdWrite(Element, frozen=True, kw_only=True):
    """A text that was stored by the model, or added to a stream."""

    name: ClassVar = "fd_write"
    holds: ClassVar = "elements"
    body: ClassVar = "`<message>`."

    fd: Fd
    chars: Annotated[int | None, Meta(description="the characters added by this call")] = None
    total_chars: Annotated[
        int | None, Meta(title="characters", description="characters of the whole text")
    ] = None
    state: StreamState = None

    def words(self) -> list[str]:
        return [self.fd]


class FdClose(Element, frozen=True, kw_only=True):
    """A descriptor that was closed."""

    name: ClassVar = "fd_close"
    holds: ClassVar = "elements"
    body: ClassVar = "`<message>`."

    fd: Fd
    success: Success = True

    def words(self) -> list[str]:
        return [self.fd]


class ProcessResult(Element, frozen=True, kw_only=True):
    """A process that another one started: its state, and its answer once it has ended."""

    name: ClassVar = "process_result"
    holds: ClassVar = "either"
    body: ClassVar = (
        "The answer if it is short, an `fd_result` if it is long; empty for a pipeline, and while it runs."
    )

    process: Annotated[str, Meta(description="its id")]
    program: Annotated[
        str | None,
        Mark.FOREIGN,
        Meta(title="program", description="its program, or the commands of a pipeline"),
    ] = None
    state: Annotated[
        ProcessState, Meta(description="`ready`, `running`, `waiting`, `exited`, `failed` or `cancelled`")
    ]
    exit_code: Annotated[int | None, Meta(description="of the process")] = None
    reason: Annotated[str | None, Mark.FOREIGN, Meta(description="why the process ended as it did")] = None
    fd: Annotated[str | None, Meta(description="the descriptor of the text that it writes")] = None
    stderr_fd: Annotated[
        str | None,
        Meta(title="standard error", description="the descriptor of the error output of a pipeline"),
    ] = None
    tee_fds: Annotated[
        str | None, Meta(title="copies", description="the descriptors of the stages whose output is kept")
    ] = None
    in_fd: Annotated[str | None, Meta(title="input", description="the open stream that feeds a pipeline")] = (
        None
    )

    def words(self) -> list[str]:
        code = "" if self.exit_code is None else f" with code {self.exit_code}"
        return [f"{self.process} {self.state}{code}", self.reason or "", self.fd or ""]


class PythonResult(Element, frozen=True, kw_only=True):
    """What code of `run_python` did. With an error the result of the call has `is_error`."""

    name: ClassVar = "python_result"
    body: ClassVar = (
        "What it printed, then the value of its last expression, or the traceback of its own lines and what "
        "to do about it."
    )

    calls: Annotated[
        int | None, Meta(title="calls", description="how often the code read, searched, asked and so on")
    ] = None
    seconds: Annotated[
        float | None, Meta(title="seconds of its own", description="its own processor time")
    ] = None


class PersonReply(Element, frozen=True, kw_only=True):
    """What a person answered: to a question of the model, or whether a call may run. Without an answer in
    time, and after a no, the result of the call has `is_error`.

    `question`, `door`, `tool` and `said` are for the log: the number of the question, the way in which it
    was answered, the tool that waited for approval, and the beginning of the answer. The model is not shown
    (`is_shown`) who approved a call that ran as it was asked.
    """

    name: ClassVar = "person_answer"
    holds: ClassVar = "either"
    body: ClassVar = (
        "The answer; the reason of a no; before the result of a call whose arguments the person changed, the "
        "arguments that it ran with. A long answer is an `fd_result`."
    )

    who: Annotated[str | None, Mark.FOREIGN, Meta(title="by", description="who answered")] = None
    when: Annotated[str | None, Meta(title="at", description="when, in UTC")] = None
    choice: Annotated[int | None, Meta(description="the number of the chosen answer, from 1")] = None
    approved: Annotated[bool | None, Meta(description="whether the call may run")] = None
    changed: Annotated[bool | None, Meta(description="`true` if the person changed its arguments")] = None
    question: int = 0
    door: str = ""
    tool: str = ""
    said: str = ""
    is_shown: bool = True

    def words(self) -> list[str]:
        by = f" by {self.who}" + (f" ({self.door})" if self.door else "") if self.who else ""
        what = "answered"
        if self.approved is not None:
            what = "approved" if self.approved else "denied"
        if not self.who:
            what = "nobody answered in time"
        changed = ", with other arguments" if self.changed else ""
        said = f": {self.said}" if self.said else ""
        return [f"{self.tool} {what}{by}{changed}{said}".strip()]


class FdError(Element, frozen=True, kw_only=True):
    """A call that failed. The result of the call has `is_error`.

    `message` is the text of its `<message>`.
    """

    name: ClassVar = "fd_error"
    holds: ClassVar = "elements"
    body: ClassVar = "`<message>`: what is so, and what to do."

    type: Annotated[str, Meta(description="[the type of the error](errors.md)")]
    fd: Annotated[
        str | None, Mark.FOREIGN, Meta(description="the descriptor that the call named, if it named one")
    ] = None
    message: str = ""

    def words(self) -> list[str]:
        return [self.type, self.fd or ""]


class FdInline(Element, frozen=True, kw_only=True):
    """A short text that contains something like an element. Any other short text has no element."""

    name: ClassVar = "fd_inline"
    body: ClassVar = "The text."


class MessagePart(Element, frozen=True, kw_only=True):
    """A sentence of fdstore."""

    name: ClassVar = "message"


class PreviewPart(Element, frozen=True, kw_only=True):
    """The beginning of a stored text, or what describes it."""

    name: ClassVar = "preview"

    kind: Annotated[str | None, Meta(description="the kind of the text, if it is described")] = None
    of: Annotated[str | None, Meta(description="the part that is described")] = None


class TailPart(Element, frozen=True, kw_only=True):
    """The last lines of a stored text."""

    name: ClassVar = "tail"


ELEMENTS: tuple[type[Element], ...] = (
    *(FdResult, FdContent, FdExtraction, FdSearch, FdDiff, FdList, FdFileResult, FdWrite, FdClose),
    *(ProcessResult, PythonResult, PersonReply, FdError, FdInline),
)
"""The elements, in the order of their page."""

PARTS: tuple[type[Element], ...] = (MessagePart, PreviewPart, TailPart)
"""The elements that stand in others alone."""

NAMED = {kind.name: kind for kind in (*ELEMENTS, *PARTS)}

TAG_STARTS = tuple(dict.fromkeys("".join(name.partition("_")[:2]) for name in NAMED))
"""The beginnings of their names, which no body may have behind a `<`."""

"""The data of an exported run: records as its page shows them, without what is to be redacted. Pure.

Each text is redacted before it is cut. What fdstore counts itself stays: sizes, times, positions, the numbers
of processes and descriptors, and its own words, such as states.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fdstore.elements.facts import NO_FACTS
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.outcome import ANSWER_CHARS, REASON_CHARS, FailureGroup, Outcome
from fdstore.inspector.web.rendering import MAX_CHARS
from fdstore.inspector.web.run_links import RunLinks
from fdstore.inspector.web.saved import SavedHere
from fdstore.inspector.web.timeline import Timeline, Window
from fdstore.inspector.web.timeline_spans import MAX_LABEL_CHARS
from fdstore.model.lifecycle import PERSON
from fdstore.model.records import Descriptor, ProcessRecord, Record, TokenUsage, Unreadable
from fdstore.text.quantities import format_count
from fdstore.text.redaction import MARK, Redactor
from fdstore.text.tokens import estimate_tokens

PREVIEW_LINES, PREVIEW_CHARS = 12, 1_500
"""Lines and characters of a content that the page has."""

SAMPLE_CHARS = 4_000
"""Characters of a content from which the number of its tokens is estimated."""

TITLE_CHARS = 300
"""Characters of the first line of the task, and of names."""

CUT_NAME_CHARS = 200
"""Names of tools and arguments are cut to this length when they are read, before anything is redacted."""

_OWN_WORDS = frozenset({"kind", "state", "before", "position", "part"})
_OF_PROCESS = frozenset({"id", "state", "parent", "waiting_for", "kind", "outputs"})


class ShownDescriptor(Record, frozen=True, kw_only=True):
    """A descriptor with the beginning of its content. `tokens` is an estimate; `left_out` says why there is
    no more of a preview, or none."""

    fd: str
    source: str
    state: str
    reason: str
    kind: str
    media_type: str
    bytes: int
    lines: int
    tokens: int
    preview: str
    is_cut: bool
    left_out: str = ""


class RunHead(Record, frozen=True, kw_only=True):
    """The head of the page; `processes` of `total` are in it, `asks` of these answer asks. Times are those of
    Redis, in seconds."""

    tree: str
    task: str
    root: ProcessRecord | None
    processes: list[ProcessRecord]
    total: int
    asks: int
    states: dict[str, int]
    tokens: TokenUsage
    cost: str
    bytes: int
    contents: int
    created_at: float
    used_at: float
    unreadable: tuple[Unreadable, ...]
    timeline: Timeline | None
    window: Window
    saved: SavedHere | None
    version: str
    now_s: float


LONGEST_ANSWER = 1_000_000
"""Characters of the answer that are read: it is redacted before it is cut."""


class RunTexts:
    """The records of a run as its page shows them."""

    def __init__(self, redactor: Redactor, links: RunLinks) -> None:
        self._redactor = redactor
        self._links = links

    def process(self, process: ProcessRecord) -> ProcessRecord:
        """Return a process as it is shown: without its task, which is cut and stands in its conversation."""
        shown = self._redactor.record(
            msgspec.structs.replace(process, call=None, task=None), keep=_OF_PROCESS
        )
        return msgspec.structs.replace(
            shown,
            id=self._links.name(process.id),
            parent=process.parent and self._name(process.parent),
            waiting_for=tuple(each if each == PERSON else self._name(each) for each in process.waiting_for),
        )

    def line(self, text: str) -> str:
        """Return the first line of a text."""
        return self._redactor.cut(text.strip().partition("\n")[0], TITLE_CHARS)[0]

    def outcome(self, found: Outcome) -> Outcome:
        """Return what came of the run, its answer cut."""
        answer, chars = self._redactor.cut(found.answer, ANSWER_CHARS)
        return msgspec.structs.replace(
            found,
            process=self.process(found.process),
            task=self.line(found.task),
            answer=answer,
            answer_chars=max(chars, found.answer_chars),
            answer_of=found.answer_of and self._name(found.answer_of),
            answer_fd=found.answer_fd and self.fd(found.answer_fd),
            failures=self._failures(found.failures),
            failed_calls=found.failed_calls
            and msgspec.structs.replace(
                found.failed_calls, failures=self._failures(found.failed_calls.failures)
            ),
            codes=tuple(map(self.process, found.codes)),
            errors=tuple(self._redactor.cut(each, REASON_CHARS)[0] for each in found.errors),
            cut_call=found.cut_call and self.entry(found.process.id, found.cut_call),
            whole_task=self._redactor.text(found.whole_task),
            cost=self._redactor.text(found.cost),
        )

    def _failures(self, groups: Iterable[FailureGroup]) -> tuple[FailureGroup, ...]:
        return tuple(
            msgspec.structs.replace(
                each, reason=self._redactor.cut(each.reason, REASON_CHARS)[0], first=self._name(each.first)
            )
            for each in groups
        )

    def entry(self, process: str, entry: ConversationEntry) -> ConversationEntry:
        """Return an entry of a process, whose texts were not cut if any are to be redacted."""
        of = entry.process and self._name(entry.process)
        bare = msgspec.structs.replace(
            entry,
            facts=NO_FACTS,
            call="",
            process="",
            calls=("",) * len(entry.calls),
            text="",
            arguments=None,
        )
        text, chars, arguments = entry.text, entry.chars, entry.arguments
        if self._redactor:
            bare = self._redactor.record(bare, keep=_OWN_WORDS | {"tool", "fds"})
            text, chars = self._redactor.cut(text, MAX_CHARS)
            arguments = _cut(self._arguments(arguments))
        return msgspec.structs.replace(
            bare,
            text=text,
            chars=chars,
            arguments=arguments,
            process=of,
            call=self._links.lane(process, entry.call),
            tool=self._cut_name(entry.tool),
            fds=tuple(map(self.fd, entry.fds)),
        )

    def fd(self, fd: str) -> str:
        """Return a descriptor's name: a number is fdstore's own, a name may be anything."""
        return fd if fd.startswith("fd:") else self._redactor.text(fd)

    def timeline(self, timeline: Timeline | None) -> Timeline | None:
        if timeline is None:
            return None
        rows = [
            msgspec.structs.replace(
                row,
                process=self._links.name(row.process),
                asked_by=row.asked_by and self._name(row.asked_by),
                call="",
                reason=self._redactor.text(row.reason),
                program=row.program and self._redactor.text(row.program),
                spans=tuple(
                    msgspec.structs.replace(span, label=self._cut_name(span.label, MAX_LABEL_CHARS))
                    for span in row.spans
                ),
            )
            for row in timeline.rows
        ]
        return msgspec.structs.replace(timeline, rows=tuple(rows))

    def descriptor(self, d: Descriptor, data: bytes) -> ShownDescriptor:
        """Return a descriptor; `data` is the beginning of its content, in bytes. With patterns to redact,
        only lines that are whole in it are shown."""
        preview, is_cut, left_out, tokens = "", False, "", 0
        if d.kind == "bytes":
            left_out = "These are bytes, which have no preview."
        elif d.bytes:
            read = data.decode("utf-8", "ignore")
            sample = read[:SAMPLE_CHARS]
            tokens = round(estimate_tokens(sample) * d.chars / max(len(sample), 1))
            is_whole = len(data) >= d.bytes
            if self._redactor and not is_whole:
                read = read[: read.rfind("\n") + 1]
                if not read:
                    left_out = "Its first line is too long to be searched for what is redacted."
            first = "\n".join(read.split("\n", PREVIEW_LINES)[:PREVIEW_LINES]).removesuffix("\n")
            preview, chars = self._redactor.cut(first, PREVIEW_CHARS)
            is_cut = not is_whole or len(first) < len(read.removesuffix("\n")) or len(preview) < chars
        return ShownDescriptor(
            fd=self.fd(d.fd),
            source=self._redactor.cut(d.source, TITLE_CHARS)[0],
            state=d.state,
            reason=self._redactor.text(d.reason or ""),
            kind=d.kind,
            media_type=self._redactor.text(d.media_type),
            bytes=d.bytes,
            lines=d.lines,
            tokens=tokens,
            preview=preview,
            is_cut=is_cut,
            left_out=left_out,
        )

    def _name(self, process: str) -> str:
        """Return how a process is shown that may be none of the run's."""
        name = self._links.name(process)
        return name if self._links.process(name) else self._redactor.text(name)

    def _cut_name(self, name: str, most: int = CUT_NAME_CHARS) -> str:
        """Return a name that is cut if it has `most` characters: its end may be the half of a secret."""
        if self._redactor and len(name) >= most:
            return MARK
        return self._redactor.text(name)

    def _arguments(self, value: Any) -> Any:
        return self._redactor.value(_with_whole_names(value))


def _with_whole_names(value: Any) -> Any:
    """Replace the names in a JSON value that are cut."""
    if isinstance(value, dict):
        return {
            MARK if len(name) >= CUT_NAME_CHARS else name: _with_whole_names(each)
            for name, each in value.items()
        }
    return [_with_whole_names(each) for each in value] if isinstance(value, list) else value


def _cut(value: Any) -> Any:
    """Cut the texts of arguments."""
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in value.items()}
    if isinstance(value, str) and len(value) > MAX_CHARS:
        return f"{value[:MAX_CHARS]}... ({format_count(len(value), 'character')})"
    return value

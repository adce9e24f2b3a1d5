"""What an exported run shows of records: nothing that a pattern to redact matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.web.rendering import MAX_CHARS
from fdstore.inspector.web.run_data import PREVIEW_CHARS, PREVIEW_LINES, RunTexts
from fdstore.inspector.web.run_links import RunLinks
from fdstore.inspector.web.timeline import make_timeline
from fdstore.inspector.web.timeline_spans import TimelineSpan, Track
from fdstore.model.records import ProcessRecord
from fdstore.text.redaction import MARK, Redactor
from tests.unit.rendering import descriptor
from tests.unit.text.test_redaction import left, letters, patterns, values

ROOT = ProcessRecord(id="triage", state="exited", started_at=1.0, ended_at=2.0)
OWN = {"kind", "state", "id", "outputs", "before", "left_out"}
"""Fields with words and numbers of fdstore itself."""


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a record, except those of fdstore itself."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in OWN:
                yield from texts_of(getattr(value, name))
    elif isinstance(value, dict):
        for pair in value.items():
            yield from texts_of(pair)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from texts_of(each)


def texts(given: list[str], *processes: ProcessRecord) -> RunTexts:
    redactor = Redactor(given)
    return RunTexts(redactor, RunLinks("triage", processes or [ROOT], redactor))


def leaks(value: Any, given: list[str]) -> list[str]:
    return [each for text in texts_of(value) for each in left(text, given)]


entries = st.builds(
    ConversationEntry,
    position=st.just(1),
    kind=st.sampled_from(["answer", "call", "result", "attempt", "end", "ask"]),
    text=letters,
    chars=st.just(30),
    tool=letters,
    arguments=values,
    worker=letters,
    stop_reason=st.none() | letters,
    process=letters,
    fds=st.lists(letters.map("name:{}".format), max_size=2).map(tuple),
)
processes = st.builds(
    ProcessRecord,
    id=st.just("triage.1"),
    state=st.just("failed"),
    program=letters,
    reason=letters,
    parent=letters,
    waiting_for=st.lists(letters, max_size=2).map(tuple),
    trouble=letters,
    worker=letters,
)
descriptors = st.builds(
    descriptor,
    letters.map("name:{}".format),
    chars=st.just(100),
    bytes=st.just(100),
    source=letters,
    reason=letters,
    media_type=letters,
)


@given(entries, processes, descriptors, letters, patterns)
def test_no_text_of_a_record_has_a_match(entry, process, descriptor, text, given):
    shown = texts(given)

    assert leaks(shown.entry("triage", entry), given) == []
    assert leaks(shown.process(process), given) == []
    assert leaks(shown.descriptor(descriptor, text.replace("\ud800", "").encode()), given) == []


@given(letters, letters, patterns)
def test_no_text_of_the_timeline_has_a_match(program, label, given):
    process = msgspec.structs.replace(ROOT, program=program)
    track = Track(process)
    track._spans = [TimelineSpan(kind="call", label=label, at=1.0, until=1.5, position=1)]

    [row] = texts(given).timeline(make_timeline([process], {"triage": track}, 1)).rows

    assert leaks([row.program, row.spans], given) == []


def test_a_secret_at_the_end_of_what_is_read_of_a_content_is_not_shown_in_part():
    data = b"first\nkey: sk-abcdefgh"
    held = descriptor(chars=200, bytes=200)

    shown = texts(["sk-[a-z]{20}"]).descriptor(held, data)
    whole = texts([]).descriptor(held, data)
    endless = texts(["sk-[a-z]{20}"]).descriptor(held, b"sk-abcdefgh")

    assert (shown.preview, shown.is_cut) == ("first", True)
    assert whole.preview.endswith("sk-abcdefgh")
    assert (endless.preview, endless.left_out) == (
        "",
        "Its first line is too long to be searched for what is redacted.",
    )


def test_a_preview_is_a_few_lines_of_a_bounded_length():
    many = texts([]).descriptor(descriptor(chars=200, bytes=200), b"a\n" * 100)
    long = texts([]).descriptor(descriptor(chars=9000, bytes=9000), b"x" * 9000)

    assert (many.preview.count("\n") + 1, len(long.preview)) == (PREVIEW_LINES, PREVIEW_CHARS)
    assert many.is_cut
    assert long.is_cut


def test_names_that_were_cut_before_they_could_be_redacted_are_not_shown():
    entry = ConversationEntry(
        position=1, kind="call", tool="t" * 200, arguments={"k" * 200: {"j" * 200: 1}, "ok": "x"}
    )

    shown = texts(["never"]).entry("triage", entry)

    assert (shown.tool, shown.arguments) == (MARK, {MARK: f'{{"{MARK}":1}}', "ok": "x"})


def test_a_long_text_is_cut_after_it_was_redacted():
    secret = "sk-" + "a" * 20
    entry = ConversationEntry(
        position=1,
        kind="result",
        text="x" * (MAX_CHARS - 5) + secret + "y" * 100,
        chars=MAX_CHARS + 118,
        arguments={"text": "z" * (MAX_CHARS - 5) + secret},
    )

    shown = texts(["sk-a{20}"]).entry("triage", entry)

    assert (len(shown.text), shown.text[-5:], shown.chars) == (MAX_CHARS, "[reda", MAX_CHARS + 105)
    assert shown.arguments == {"text": "z" * (MAX_CHARS - 5) + "[reda... (12,005 characters)"}


def test_a_name_of_a_process_that_matches_hides_all_of_them_and_links_still_lead_there():
    members = [
        ROOT,
        msgspec.structs.replace(ROOT, id="triage.1", parent="triage", waiting_for=("triage.1.2", "person")),
    ]
    redactor = Redactor(["tri"])
    links = RunLinks("triage", members, redactor)

    shown = RunTexts(redactor, links).process(members[1])

    assert (shown.id, shown.parent, shown.waiting_for) == (f"{MARK}.1", MARK, (f"{MARK}.1.2", "person"))
    assert [links.process(each) for each in (shown.id, MARK, f"{MARK}.1.2")] == ["#p-run.1", "#p-run", ""]
    links.hold(shown.id, ["fd:3", "name:a", "name:a"])
    assert [links.descriptor(shown.id, fd) for fd in ("fd:3", "name:a", "fd:4")] == [
        "#d-run.1-3",
        "#d-run.1-x1",
        "",
    ]
    assert links.descriptor(MARK, "fd:3") == ""

"""Each kind of entry has its words in one place, and everybody who shows entries has them."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from fdstore.cli.log_lines import LogLines, entry_lines
from fdstore.inspector.reading.entries import ConversationEntry, EntryKind
from fdstore.inspector.reading.narrate import narrate
from fdstore.inspector.reading.steps import Step
from fdstore.inspector.web.pane import title_of
from fdstore.inspector.web.rendering import page_templates
from fdstore.model.records import TokenUsage

HOSTILE = "<script>\x1b[31m"


def entry(kind: Any, **fields: Any) -> ConversationEntry:
    return ConversationEntry(position=1, kind=kind, **fields)


def page(it: ConversationEntry) -> str:
    """Return the HTML of an entry, each run of blanks as one."""
    return " ".join(str(page_templates().get_template("entries.html").module.body("triage", it, "")).split())


@pytest.mark.parametrize("kind", get_args(EntryKind))
def test_each_kind_is_shown_by_the_log_by_rows_and_by_pages(kind: str) -> None:
    it = entry(kind, text=HOSTILE, chars=len(HOSTILE), worker=HOSTILE, state=HOSTILE, tool=HOSTILE, number=2)

    line = narrate(it)
    [*logged] = entry_lines(it)
    html = page(it)

    assert len(line.label) <= 8
    assert line.label in logged[0]
    assert title_of(Step(entry=it)) == line.title
    assert HOSTILE not in html
    assert "\x1b" not in "".join(logged) + html
    assert html.startswith(("<h3>", "<p>", "<p class="))
    assert len(html.split(">", 1)[1]) > len("</h3>")


def test_a_text_that_a_page_shows_below_a_heading_is_whole_there() -> None:
    for kind in get_args(EntryKind):
        it = entry(kind, text="what it says", chars=12)
        if narrate(it).text_lines:
            assert ">what it says</div>" in page(it), kind


def test_the_model_is_sent_what_it_is_told_and_what_its_calls_return() -> None:
    sent = [kind for kind in get_args(EntryKind) if narrate(entry(kind)).is_sent]

    assert sent == ["system", "prompt", "result", "note"]


def test_errors_are_those_of_the_model_its_tools_workers_and_damaged_records() -> None:
    errors = [
        entry("retry"),
        entry("unreadable"),
        entry("loss"),
        entry("end", state="failed"),
        entry("result", is_error=True),
        entry("ask", is_error=True),
    ]
    others = [
        entry("attempt", before="return"),
        entry("attempt", before="loss"),
        entry("end", state="cancelled"),
        entry("result"),
        entry("ask"),
    ]

    assert all(narrate(each).is_error for each in errors)
    assert not any(narrate(each).is_error for each in others)


def test_what_took_time_tells_it_in_the_log_on_pages_and_on_the_timeline() -> None:
    used = TokenUsage(input_tokens=12_345, output_tokens=30, cache_read_tokens=900)
    it = entry("answer", number=2, text="So.", duration_s=2.5, usage=used, stop_reason="max_tokens")

    line = narrate(it)

    assert line.details == ("2.5 s", "12,345 in (7 % cached), 30 out", "stop reason max_tokens")
    assert '<h3>Answer 2 <span class="took">2.5 s</span><span class="tokens"' in page(it)
    assert '12.3k in · 30 out</span><span class="lost">max_tokens</span></h3>' in page(it)
    assert (line.took_s, line.span.kind, line.span.label) == (2.5, "answer", "answer 2")


def test_the_bar_of_a_call_is_drawn_where_its_result_is() -> None:
    assert narrate(entry("call", tool="read_fd")).span.took_s is None
    assert narrate(entry("result", tool="read_fd")).span.took_s == 0.0
    assert narrate(entry("answer", number=1)).span.took_s is None


def test_the_log_leaves_out_a_prompt_that_is_the_task_again() -> None:
    lines = LogLines()

    shown = [
        list(lines.of(each))
        for each in (entry("task", text="Why?"), entry("prompt", text="Why?"), entry("prompt", text="And?"))
    ]

    assert [bool(each) for each in shown] == [True, False, True]


def test_tokens_that_no_server_counted_are_marked_as_an_estimate() -> None:
    usage = TokenUsage(input_tokens=1200, output_tokens=30)
    counted, estimated = (entry("answer", usage=usage, is_estimated=each) for each in (False, True))

    assert "~" not in page(counted) + "".join(entry_lines(counted))
    assert "~1.2k in · ~30 out" in page(estimated)
    assert "~1,200" in "".join(entry_lines(estimated))

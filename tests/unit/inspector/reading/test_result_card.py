"""Results as cards: elements in the words of `fdstore log`, without a tag."""

from __future__ import annotations

import pytest

from fdstore.elements import render, render_search
from fdstore.elements.build import Rendered
from fdstore.elements.facts import NO_FACTS, ResultFacts, in_block
from fdstore.errors import NotFound
from fdstore.inspector.reading.describe_result import describe_result
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.reading.result_card import Card, make_cards
from fdstore.model.people import PersonAnswer
from fdstore.model.records import Hit, SearchResult
from tests.unit.rendering import descriptor, make_slice, process

STORED = render.fd_result(
    descriptor("fd:3", source="build <log>"),
    make_slice("an <b> & a\n", lines="1-40"),
    "the end",
    "The text is stored. Read it with read_fd.",
    700,
)
CONTENT = render.fd_content(make_slice("the log\n"))
HIT = Hit(line=3, text="a <hit>", chars="5-5", line_start=3, column=1)
SEARCH = render_search.fd_search(
    SearchResult(fd="fd:1", pattern="a|b", hits=(HIT,), shown=1, matches=12, total_hits=12, lines_searched=99)
)
MISSING = render.fd_error(NotFound("fd:9", ("fd:1",)), "fd:9")
FAILED = render.process_result(process(state="failed", exit_code=1, reason="poison", outputs=("fd:4",)))
LARGE = render.process_result(process(), result=STORED)


def result(text: str, facts: ResultFacts = NO_FACTS, chars: int = 0) -> ConversationEntry:
    return ConversationEntry(position=4, kind="result", text=text, chars=chars or len(text), facts=facts)


def card(rendered: Rendered, facts: ResultFacts | None = None) -> Card:
    [found] = make_cards(result(rendered.text, rendered.facts if facts is None else facts))
    return found


def test_a_stored_text_has_its_descriptor_name_size_lines_and_beginning() -> None:
    found = card(STORED)

    assert (found.fd, found.words) == ("fd:3", "stored: 12 pages, 48,000 characters")
    assert found.rows == (("name", "build <log>"), ("lines in all", "500, 1-40 shown"), ("tokens", "~700"))
    assert (found.body, found.tail, found.message) == ("an <b> & a\n", "the end", "")


def test_a_part_that_was_read_says_which_pages_and_lines() -> None:
    found = card(CONTENT)

    assert (found.fd, found.words, found.body) == ("fd:1", "page 2 of 3, lines 41-80", "the log\n")
    assert dict(found.rows)["lines in all"] == "100"


def test_an_error_has_the_words_of_the_log_and_its_message() -> None:
    found = card(MISSING)

    assert found.is_error
    assert found.words == describe_result(MISSING.facts) == "not_found, fd:9"
    assert found.message == MISSING.facts.error.message == "fd:9 does not exist; there are: fd:1"
    assert (found.fd, found.rows, found.body) == ("", (), "")


def test_a_search_shows_its_hits() -> None:
    found = card(SEARCH)

    assert (found.fd, found.words, found.body) == ("fd:1", "pattern a|b, matches 12", "3:a <hit>")


def test_a_process_that_failed_is_named_with_its_reason() -> None:
    found = card(FAILED)

    assert (found.process, found.words) == ("triage.1", "failed with code 1, poison, fd:4")


def test_a_result_in_a_result_is_a_card_of_its_own() -> None:
    outer, inner = make_cards(result(LARGE.text, LARGE.facts))

    assert (outer.process, outer.words) == ("triage.1", "exited with code 0")
    assert (inner.fd, inner.body) == ("fd:3", "an <b> & a\n")


@pytest.mark.parametrize(
    "rendered", [STORED, CONTENT, SEARCH, MISSING, FAILED], ids=lambda each: each.text.split()[0]
)
def test_a_result_of_an_older_journal_is_described_from_its_text(rendered: Rendered) -> None:
    assert card(rendered, NO_FACTS) == card(rendered)


@pytest.mark.parametrize(
    "rendered",
    [
        render.fd_write(descriptor("fd:2", state="open"), 5, "It takes more."),
        render.fd_close("fd:2"),
        render.fd_list([descriptor()], 5),
        render.python_result("42", calls=3, seconds=0.5),
        render.person_answer(PersonAnswer(by="ann", at_ms=1, approved=False), 1, "No."),
        render.fd_result_of_bytes(descriptor(kind="bytes", bytes=12, media_type="image/png"), "Stored."),
        STORED, CONTENT, SEARCH, MISSING, FAILED, LARGE,
    ],
    ids=lambda each: each.text.split()[0],
)  # fmt: skip
def test_no_card_has_a_tag(rendered: Rendered) -> None:
    cards = make_cards(result(rendered.text, rendered.facts))

    assert cards
    assert not any(tag in str(cards) for tag in ("<fd_", "<message", "<preview", "<process_", "</"))


def test_texts_beside_an_element_are_kept() -> None:
    facts = in_block(STORED.facts, 1)

    before, found = make_cards(result(f"two files\n{STORED.text}", facts))

    assert before == Card(body="two files", chars=9)
    assert found == card(STORED)


def test_a_text_that_was_cut_counts_the_whole() -> None:
    whole = render.fd_content(make_slice("x" * 5000))
    text = whole.text[:1000]

    [found] = make_cards(result(text, whole.facts, chars=len(whole.text)))

    assert found.chars - len(found.body) == len(whole.text) - 1000


def test_other_texts_have_no_card() -> None:
    assert make_cards(result("a text <b> of\n  <fd_other>")) == ()
    assert make_cards(result("")) == ()

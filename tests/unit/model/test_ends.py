"""Reasons of ends: a row each, from which texts, states and the ends of streams follow."""

from __future__ import annotations

import pytest

from fdstore.model import ends
from fdstore.model.ends import REASONS, Reason
from fdstore.wire.script_constants import IN_LUA


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_a_reason_is_found_by_the_text_that_records_have(reason: Reason) -> None:
    said = reason.text(3, 4)

    assert ends.find(said) is reason
    assert ends.find(f"{reason.name}er") is None
    assert ends.text_of(reason.name, 3, 4) == said


def test_names_are_different_and_scripts_know_each() -> None:
    assert len({each.name for each in REASONS}) == len(REASONS)
    assert {each.name: IN_LUA[each.name.upper()] for each in REASONS} == {
        each.name: f"'{each.name}'" for each in REASONS
    }


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_streams_break_for_the_reason_of_their_process_unless_its_row_has_another(reason: Reason) -> None:
    broken = ends.broken_as(reason.state, reason.text(3, 4))

    if reason.state == "cancelled":
        assert broken == "cancelled"
    else:
        assert broken == (reason.breaks_streams_as or reason.text(3, 4))


def test_people_read_what_to_do_about_each_failure() -> None:
    failures = [each for each in REASONS if each.state == "failed" and each is not ends.WRITER_LOST]

    assert [each.name for each in failures if not each.to_do] == []


def test_a_text_of_an_error_or_of_a_program_is_no_reason_of_fdstore() -> None:
    assert ends.find("closed: by its program") is None
    assert ends.broken_as("failed", "ValueError: no such column") == "ValueError: no such column"
    assert ends.broken_as("exited", "") == "writer_lost"
    assert ends.broken_as("cancelled", "") == "cancelled"

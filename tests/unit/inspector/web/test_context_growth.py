"""The text that descriptors kept out of a context, turn by turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import FdResult
from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.inspector.web.context_growth import (
    MAX_POINTS,
    MAX_TURNS,
    ContextGrowth,
    Point,
    line_of,
    saved_curve,
)
from fdstore.model.records import TokenUsage


def answer(sent: int, at: float = 0.0) -> ConversationEntry:
    return ConversationEntry(position=0, kind="answer", at=at, usage=TokenUsage(input_tokens=sent))


def result(
    call: str, tokens: int, *, tool: str = "Bash", stored: int = 0, is_error: bool = False
) -> ConversationEntry:
    facts = ResultFacts(stored=(FdResult(fd="fd:1", tokens=stored, shown_chars=400),) if stored else ())
    return ConversationEntry(
        position=0,
        kind="result",
        call=call,
        tool=tool,
        chars=400,
        tokens=tokens,
        facts=facts,
        is_error=is_error,
    )


def growth(*entries: ConversationEntry) -> ContextGrowth:
    found = ContextGrowth()
    for entry in entries:
        found.add(entry)
    return found


def test_a_stored_text_is_not_sent_in_every_later_turn() -> None:
    curve = saved_curve([growth(answer(500), result("a", 100, stored=9000), answer(700), answer(800))])

    assert [(each.turn, each.sent, each.without) for each in curve.points] == [
        (1, 500, 500), (2, 1200, 500 + 9600), (3, 2000, 500 + 9600 + 9700),
    ]  # fmt: skip
    assert (curve.kept, curve.saved, curve.percent) == (8900, 17_800, "90")


def test_what_is_read_back_counts_against_it() -> None:
    page = result("b", 1000, tool="read_fd")
    failed = result("c", 50, tool="read_fd", is_error=True)
    curve = saved_curve([growth(result("a", 100, stored=900), page, failed, answer(2000))])

    assert (curve.kept, curve.read, curve.without) == (800, 1000, 1800)
    assert (curve.saved, curve.percent) == (-200, "-11")


def test_a_cleared_result_is_not_sent_from_then_on() -> None:
    cleared = ConversationEntry(position=0, kind="cleared", calls=("a", "unknown"), tokens=10)
    curve = saved_curve([growth(result("a", 700), answer(900), cleared, answer(300), cleared, answer(300))])

    assert (curve.cleared, curve.sent, curve.without) == (690, 1500, 900 + 990 + 990)


def test_without_turns_there_is_no_curve() -> None:
    assert saved_curve([]) is None
    assert saved_curve([growth(result("a", 10, stored=900))]) is None


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=400),
    st.integers(1, 12),
)
def test_a_curve_has_few_points_and_the_sums_of_all_turns(turns: list[tuple[int, int]], times: int) -> None:
    turns = turns * times
    entries = [
        each
        for number, (sent, stored) in enumerate(turns)
        for each in (result(f"t{number}", 0, stored=stored), answer(sent, number))
    ]
    half = len(entries) // 2 // 2 * 2
    alone, parted = (
        saved_curve([growth(*entries)]),
        saved_curve([growth(*entries[:half]), growth(*entries[half:])]),
    )

    assert alone.turns == parted.turns == len(turns)
    assert alone.sent == parted.sent == sum(sent for sent, _ in turns)
    assert alone.kept == parted.kept == sum(stored for _, stored in turns)
    assert len(alone.points) <= MAX_POINTS
    assert alone.points[-1] == Point(len(turns), alone.sent, alone.without)
    assert list(alone.points) == sorted(alone.points, key=lambda each: each.turn)


def test_a_conversation_of_any_length_keeps_a_bounded_number_of_turns() -> None:
    found = growth(*(answer(1, number) for number in range(5 * MAX_TURNS)))

    assert len(found.turns) <= MAX_TURNS
    assert sum(each.count for each in found.turns) == 5 * MAX_TURNS


def test_the_lines_begin_at_zero_and_the_higher_one_ends_at_the_top() -> None:
    curve = saved_curve([growth(answer(100), result("a", 0, stored=300), answer(100))])

    line = line_of(curve)
    assert line.sent.split() == ["0.0,100.00", "500.0,80.00", "1000.0,60.00"]
    assert line.without.split() == ["0.0,100.00", "500.0,80.00", "1000.0,0.00"]
    assert line.between == f"{line.without} {' '.join(line.sent.split()[::-1])}"


@pytest.mark.parametrize("sent", [0, 1])
def test_a_model_that_counts_no_tokens_has_a_flat_curve(sent: int) -> None:
    curve = saved_curve([growth(answer(sent))])

    assert curve.percent == "0"
    assert line_of(curve).sent.split()[0] == "0.0,100.00"


def test_the_turns_before_which_results_were_cleared_are_known() -> None:
    cleared = ConversationEntry(position=0, kind="cleared", calls=("a",), tokens=10)
    entries = (result("a", 700), answer(900), answer(950), cleared, answer(300), answer(310))
    curve = saved_curve([growth(*entries)])

    assert curve.cleared_at == (3,)
    assert line_of(curve).cleared == (750.0,)


def test_the_first_turn_that_no_context_could_hold_is_known() -> None:
    texts = [each for n in range(4) for each in (result(f"t{n}", 0, stored=400_000), answer(1000, n))]
    fits, beyond = saved_curve([growth(*texts[:4])]), saved_curve([growth(*texts)])

    assert (fits.beyond_at, line_of(fits).beyond) == (None, None)
    assert (beyond.beyond_at, line_of(beyond).beyond) == (3, 750.0)


def test_the_context_of_a_program_may_be_smaller() -> None:
    prompt = ConversationEntry(position=0, kind="prompt", context_window=500_000)
    texts = [each for n in range(4) for each in (result(f"t{n}", 0, stored=400_000), answer(1000, n))]

    assert saved_curve([growth(prompt, *texts)]).beyond_at == 2


def test_both_lines_have_their_tokens_at_their_ends() -> None:
    texts = [each for n in range(8) for each in (result(f"t{n}", 0, stored=900), answer(100, n))]
    line = line_of(saved_curve([growth(*texts)]))

    assert [(each.tokens, each.is_estimate, each.x) for each in line.labels] == [
        (100, False, 12.5), (8 * 100 + 900 * 36, True, 100.0), (800, False, 100.0),
    ]  # fmt: skip
    assert line.labels[1].y == 0.0
    assert line.labels[1].below_px < 0


def test_equal_lines_have_one_label() -> None:
    assert [each.tokens for each in line_of(saved_curve([growth(answer(100))])).labels] == [100]

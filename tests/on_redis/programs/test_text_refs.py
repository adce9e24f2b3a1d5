"""Texts as code sees them: positions count from the beginning of the text or part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, PositionOutOfRange, TooLarge
from fdstore.programs import text_refs
from tests.properties import examples

TEXTS = st.text(alphabet="ab\u00e9\n", min_size=1, max_size=200)
LIMIT = 10**6


def read(store: Store, proc: Process, ref: Any, unit: text_refs.Unit, first: int, last: int) -> str:
    text_ref = store.run(text_refs.look_up(proc.handle, ref))
    return store.run(text_refs.read(proc.handle, text_ref, unit, first, last, LIMIT))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200), deadline=None
)
@given(text=TEXTS, page_size=st.integers(1, 40), data=st.data())
def test_a_part_is_read_as_the_text_that_it_is(
    store: Store, text: str, page_size: int, data: st.DataObject
) -> None:
    proc = store.process()
    d = proc.create(text, page_size=page_size)
    first = data.draw(st.integers(1, len(text)))
    last = data.draw(st.integers(first, len(text)))
    part = text[first - 1 : last]
    text_ref = store.run(text_refs.look_up(proc.handle, f"{d.fd}#C{first}-{last}"))

    lines = part.splitlines(keepends=True)
    assert (text_ref.extent.chars, text_ref.extent.lines) == (len(part), len(lines))
    assert store.run(text_refs.read(proc.handle, text_ref, "all", 1, 1, LIMIT)) == part
    begin = data.draw(st.integers(1, len(lines)))
    end = data.draw(st.integers(begin, len(lines) + 3))
    assert store.run(text_refs.read(proc.handle, text_ref, "lines", begin, end, LIMIT)) == "".join(
        lines[begin - 1 : end]
    )
    begin = data.draw(st.integers(1, len(part)))
    end = data.draw(st.integers(begin, len(part) + 3))
    assert (
        store.run(text_refs.read(proc.handle, text_ref, "chars", begin, end, LIMIT)) == part[begin - 1 : end]
    )
    pages = [
        store.run(text_refs.read(proc.handle, text_ref, "pages", n, n, LIMIT))
        for n in range(1, text_ref.pages + 1)
    ]
    assert "".join(pages) == part
    hits = store.run(text_refs.search(proc.handle, text_ref, "(a)(b)?", 1000, ignore_case=False, context=0))
    assert [(hit["line"], hit["text"]) for hit in hits] == [
        (number, line.removesuffix("\n")) for number, line in enumerate(lines, 1) if "a" in line
    ]
    for hit in hits:
        begin, end = hit["chars"]
        assert part[begin - 1 : end] == "".join(group or "" for group in hit["groups"])


def test_a_part_of_a_part_is_a_part_of_the_text(store: Store) -> None:
    proc = store.process()
    d = proc.create("".join(f"{number}\n" for number in range(1, 2001)), page_size=100)
    whole = store.run(text_refs.look_up(proc.handle, d.fd))
    [_, second, *_] = store.run(text_refs.split(proc.handle, whole, "lines", 500))

    [first, *_] = store.run(text_refs.split(proc.handle, second, "chars", 300))

    assert store.run(text_refs.read(proc.handle, second, "lines", 1, 1, LIMIT)) == "501\n"
    assert store.run(text_refs.read(proc.handle, first, "lines", 1, 1, LIMIT)) == "501\n"
    assert read(store, proc, first.ref, "lines", 2, 2) == "502\n"
    assert first.extent.chars <= 300


@pytest.mark.parametrize(
    ("unit", "first", "last", "error"),
    [
        ("lines", 0, 1, InvalidArgument),
        ("lines", 3, 2, InvalidArgument),
        ("lines", 4, 4, PositionOutOfRange),
        ("chars", 7, 7, PositionOutOfRange),
        ("pages", 2, 2, PositionOutOfRange),
        ("lines", True, 1, InvalidArgument),
        ("lines", "1", 1, InvalidArgument),
    ],
)
def test_wrong_positions_are_refused(
    store: Store, unit: text_refs.Unit, first: Any, last: Any, error: type[Exception]
) -> None:
    proc = store.process()
    proc.create("x\na\nb\nc\nd\n")
    with pytest.raises(error):
        read(store, proc, "fd:1#C3-8", unit, first, last)


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (-5, "-5"), (True, "True"), (1.5, "1.5"), ("1", "'1'")]
)
def test_a_wrong_number_is_shown_as_it_is(store: Store, value: Any, shown: str) -> None:
    proc = store.process()
    proc.create("a\nb\n")
    text_ref = store.run(text_refs.look_up(proc.handle, 1))

    for use in (
        lambda: read(store, proc, 1, "lines", value, 2),
        lambda: store.run(text_refs.split(proc.handle, text_ref, "chars", value)),
    ):
        with pytest.raises(InvalidArgument, match=f": {shown} is not a number from 1 on"):
            use()


def test_more_than_the_limit_is_too_large(store: Store) -> None:
    proc = store.process()
    proc.create("x" * 5000)
    text_ref = store.run(text_refs.look_up(proc.handle, 1))
    with pytest.raises(TooLarge):
        store.run(text_refs.read(proc.handle, text_ref, "all", 1, 1, 4999))


def test_an_empty_text_has_nothing_and_is_one_part(store: Store) -> None:
    proc = store.process()
    proc.create("")
    text_ref = store.run(text_refs.look_up(proc.handle, 1))
    assert store.run(text_refs.read(proc.handle, text_ref, "all", 1, 1, 1)) == ""
    assert store.run(text_refs.search(proc.handle, text_ref, "x", 1, ignore_case=False, context=0)) == []
    assert store.run(text_refs.split(proc.handle, text_ref, "chars", 10)) == [text_ref]

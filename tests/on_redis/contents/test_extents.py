"""Extents of parts, and the cutting of texts into parts, checked against the text itself."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.store.contents import extents
from fdstore.store.contents.extents import Extent
from fdstore.text.selection import selector
from tests.on_redis.contents.test_page_cost import cost_of
from tests.properties import examples

LINES = st.lists(st.sampled_from(["", "a", "bb\u00e9", "c" * 9, "d" * 40]), max_size=60)


def text_of(text: str, extent: Extent) -> str:
    return text[extent.first_char - 1 : extent.first_char - 1 + extent.chars]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200), deadline=None
)
@given(
    lines=LINES, ends=st.booleans(), page_size=st.integers(1, 30), unit=st.sampled_from("PLC"), data=st.data()
)
def test_an_extent_is_what_a_read_returns(store, lines, ends, page_size, unit, data):
    text = "\n".join(["x", *lines]) + ("\n" if ends else "")
    proc = store.process()
    d = proc.create(text, page_size=page_size)
    total = {"P": d.pages, "L": d.lines, "C": d.chars}[unit]
    first = data.draw(st.integers(1, total))
    last = data.draw(st.integers(first, total))
    part = selector(f"{d.fd}#{unit}{first}-{last}").part

    _, found = store.run(extents.measure(proc.handle, d.fd, part))

    read = proc.read(f"{d.fd}#{unit}{first}-{last}")
    assert text_of(text, found) == read.text
    assert f"{found.first_char}-{found.first_char + found.chars - 1}" == read.chars
    assert f"{found.first_line}-{found.first_line + found.lines - 1}" == read.lines


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200), deadline=None
)
@given(
    lines=LINES,
    ends=st.booleans(),
    page_size=st.integers(1, 30),
    unit=st.sampled_from(["chars", "lines", "pages"]),
    size=st.integers(1, 90),
    data=st.data(),
)
def test_parts_are_the_text_again_and_as_large_as_asked(store, lines, ends, page_size, unit, size, data):
    text = "\n".join(["x", *lines]) + ("\n" if ends else "")
    proc = store.process()
    d = proc.create(text, page_size=page_size)
    first = data.draw(st.integers(1, d.chars))
    last = data.draw(st.integers(first, d.chars))
    _, whole = store.run(extents.measure(proc.handle, d.fd, selector(f"{d.fd}#C{first}-{last}").part))

    parts = store.run(extents.split(proc.handle, d.fd, whole, unit, size))

    texts = [text_of(text, each) for each in parts]
    assert "".join(texts) == text[first - 1 : last]
    line = whole.first_line
    for each, inside in zip(parts, texts, strict=True):
        assert each.first_line == line
        assert each.lines == inside.count("\n") + (not inside.endswith("\n"))
        line += inside.count("\n")
    if unit == "chars":
        assert all(len(each) <= max(size, page_size) for each in texts)
        for each in texts[:-1]:
            assert each.endswith("\n") or "\n" not in each[:-page_size] or size >= 2 * page_size
    if unit == "lines":
        assert all(each.lines == size for each in parts[1:-1])


def test_to_cut_a_large_text_moves_none_of_it(store, execute):
    proc = store.process()
    d = proc.create("a line of text\n" * 200_000)
    again = store.process(proc.id)

    parts, calls, sent = cost_of(
        execute,
        lambda: store.run(extents.split(again.handle, d.fd, extents.whole(d), "chars", 50_000)),
    )

    assert 60 <= len(parts) <= 66
    assert all(each.chars <= 50_000 for each in parts)
    assert sent < d.bytes / 100
    assert calls["hmget"] == 1  # the index, whole


def test_too_many_parts_are_refused(store):
    proc = store.process()
    d = proc.create("x" * 200_001, page_size=100_000)
    with pytest.raises(InvalidArgument, match="more than 100000 parts"):
        store.run(extents.split(proc.handle, d.fd, extents.whole(d), "chars", 1))
    long = proc.create("\n" * 100_001)
    with pytest.raises(InvalidArgument, match="more than 100000 parts"):
        store.run(extents.split(proc.handle, long.fd, extents.whole(long), "lines", 1))

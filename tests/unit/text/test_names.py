"""Keys of names: what is one, and where a selector after it begins."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.text.names import check_prefix, name_id, split_name
from fdstore.text.selection import JsonValue, Part, fd_id, selector

keys = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40).filter(
    lambda key: (
        not re.search(r"#([PLC][0-9]{1,16}(-[0-9]{1,16})?|J(/.*)?)\Z", key) and not key.startswith("name:")
    )
)


@given(key=keys, first=st.integers(1, 99), more=st.integers(0, 9))
def test_a_name_is_an_id_and_takes_a_selector(key: str, first: int, more: int) -> None:
    name = name_id(key)

    assert name == fd_id(name) == f"name:{key}"
    assert split_name(name) == (name, None)
    found = selector(f"{name}#L{first}-{first + more}")
    assert (found.fd, found.part) == (name, Part("line", first, more + 1))


@pytest.mark.parametrize("pointer", ["", "/", "/a/0", "/a#L1-9", "/a#J/b", "/~0~1", "/a\nb"])
def test_a_pointer_takes_all_that_follows_it(pointer: str) -> None:
    for fd in ("name:notes/plan.json", "name:issue#7", "fd:3", "ref:plan"):
        found = selector(f"{fd}#J{pointer}")

        assert (found.fd, found.part) == (fd, JsonValue(pointer))
        assert selector(str(found)) == found


@pytest.mark.parametrize(
    "key",
    [
        "a",
        "#",
        "a#Jb",
        "a#J.json",
        "a#b",
        "a#L",
        "a#Lx",
        "a#L1--",
        "x y",
        "漢字",
        "é" * 512,
        "x" * 1024,
        "fd:3",
    ],
)
def test_any_text_without_control_characters_is_a_key(key: str) -> None:
    assert selector(name_id(key)).fd == f"name:{key}"


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", "0 bytes"),
        ("x" * 1025, "1025 bytes"),
        ("é" * 513, "1026 bytes"),
        ("a\nb", r"control character \(U\+000A\)"),
        ("\x7f", r"U\+007F"),
        ("a\x85", r"U\+0085"),
        ("\ud800", "lone surrogate"),
        ("notes#L1-9", "ends in #L1-9"),
        ("notes#P2", "ends in #P2"),
        ("notes#J", "ends in #J"),
        ("notes#J/a#b", "ends in #J/a#b"),
        ("name:x", "the key alone"),
        (None, "a text is needed"),
        (3, "a text is needed"),
        (b"x", "a text is needed"),
    ],
)
def test_anything_else_is_refused(key: object, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        name_id(key)


@given(key=st.text(max_size=3))
def test_every_key_is_accepted_or_refused_with_a_typed_error(key: str) -> None:
    try:
        assert fd_id(name_id(key)) == f"name:{key}"
    except InvalidArgument:
        assert (
            key == ""
            or any(unicodedata.category(char) in {"Cc", "Cs"} for char in key)
            or re.search(r"#([PLC][0-9]+|J(/.*)?)\Z", key)
        )


@pytest.mark.parametrize("value", ["name:", "name:#L1", "name:a\n", "name:a#L3-2", "name:a#L0", "name:a#L01"])
def test_selectors_of_no_name_are_refused(value: str) -> None:
    with pytest.raises(InvalidArgument):
        selector(value)


def test_a_part_is_refused_where_a_whole_content_is_needed() -> None:
    with pytest.raises(InvalidArgument, match="without #L1-9"):
        fd_id("name:notes#L1-9")


@pytest.mark.parametrize(
    ("prefix", "is_valid"), [("", True), ("notes/", True), ("a#L1", True), ("\n", False), (None, False)]
)
def test_a_prefix_is_the_beginning_of_a_key(prefix: object, is_valid: bool) -> None:
    if is_valid:
        assert check_prefix(prefix) == prefix
    else:
        with pytest.raises(InvalidArgument, match="prefix"):
            check_prefix(prefix)

"""Named passages and placeholders in a model's text are found exactly, whatever surrounds them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.text.ref_tags import MAX_NESTING, placeholders, references

TAGS = ['<ref id="a">', "<ref id='b'>", "<ref id=bad>", '<ref id="a"/>']
TAGS += ["<ref>", "<ref", "</ref>", "</ref >", ">"]
pieces = st.lists(st.sampled_from(TAGS) | st.text(max_size=3), max_size=25).map("".join)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('a <ref id="plan">1. dig\n2. fill\n</ref> b', [("plan", "1. dig\n2. fill\n")]),
        ("<ref id='x.Y_z-9'></ref>", [("x.Y_z-9", "")]),
        ('<ref\n id = "a"\t>x</ref\n>', [("a", "x")]),
        ('<ref id="a">1</ref><ref id="b">2</ref>', [("a", "1"), ("b", "2")]),
        ('```xml\n<ref id="code">\n<b/>\n</ref>\n```', [("code", "\n<b/>\n")]),
        (f'<ref id="{"n" * 64}">x</ref>', [("n" * 64, "x")]),
    ],
)
def test_a_passage_is_exactly_the_text_between_its_tags(text: str, found: list[tuple[str, str]]):
    assert references(text) == found


def test_nested_passages_are_both_kept_in_order_of_opening_and_the_outer_holds_the_inner_tags():
    text = '<ref id="out">a <ref id="in">b</ref> c</ref>'

    assert references(text) == [("out", 'a <ref id="in">b</ref> c'), ("in", "b")]


@pytest.mark.parametrize(
    "text",
    [
        *('<ref id="a">never closed', "</ref> closed before opened", "<ref>x</ref>", "<ref id=a>x</ref>"),
        *("<ref id=\"a'>x</ref>", '<ref id="">x</ref>', f'<ref id="{"n" * 65}">x</ref>', '<ref id="a"'),
        *('<ref id="é">x</ref>', '<ref id="a b">x</ref>', '<ref id="a\n">x</ref>', '<REF id="a">x</REF>'),
        *('<ref id="a" lang="en">x</ref>', '<ref id="a"/>x</ref>', '<reference id="a">x</ref>'),
    ],
)
def test_unclosed_and_malformed_passages_are_left_alone(text: str):
    assert references(text) == []


def test_an_unclosed_passage_does_not_keep_a_later_one_from_being_found():
    assert references('<ref id="lost">never closed <ref id="kept">x</ref> and on') == [("kept", "x")]


def test_a_malformed_passage_inside_another_takes_its_own_closing_tag():
    text = '<ref id="out">a <ref id="not a name">b</ref> c</ref>'

    assert references(text) == [("out", 'a <ref id="not a name">b</ref> c')]


def test_passages_nested_beyond_the_limit_are_text_of_the_enclosing_passage():
    depth = MAX_NESTING + 5
    text = "".join(f'<ref id="r{n}">' for n in range(1, depth + 1)) + "x" + "</ref>" * depth

    assert [name for name, _ in references(text)] == [f"r{n}" for n in range(1, MAX_NESTING + 1)]


@pytest.mark.parametrize(
    "text",
    [
        '<ref id="a">' * 100_000,
        '<ref id="a">' * 100_000 + "</ref>" * 100_000,
        "<ref " * 200_000,
        "<ref" + " " * 1_000_000,
        "</ref" + " " * 1_000_000,
        '<ref id="' + "a" * 1_000_000,
        "{{" * 500_000,
        "{{" + " " * 1_000_000 + "fd:1",
    ],
    ids=["open", "nested", "unfinished", "blanks", "closing blanks", "long name", "braces", "blank braces"],
)
def test_a_megabyte_of_hostile_tags_takes_no_more_than_linear_time(text: str):
    began = time.process_time()

    references(text)
    placeholders(text)

    assert time.process_time() - began < 5


@given(text=pieces)
def test_every_passage_is_found_in_the_text_between_its_own_tags(text: str):
    for name, content in references(text):
        assert f'<ref id="{name}">{content}</ref' in text or f"'{name}'>{content}</ref" in text


@given(
    passages=st.lists(
        st.tuples(
            st.from_regex(r"\A[A-Za-z0-9_.-]{1,64}\Z"),
            st.text().filter(lambda content: "<" not in content),
        )
    )
)
def test_every_named_passage_is_found(passages: list[tuple[str, str]]):
    text = "".join(f'<ref id="{name}">{content}</ref>' for name, content in passages)

    assert references(text) == passages


@pytest.mark.parametrize(
    ("text", "selectors"),
    [
        ("{{fd:3}}", ["fd:3"]),
        ("a{{fd:3#L10-20}}b{{ ref:plan }}c", ["fd:3#L10-20", "ref:plan"]),
        ("{{\n fd-3\t}}", ["fd-3"]),
        ("{{ref:a.b-c_9#C1-5}}", ["ref:a.b-c_9#C1-5"]),
        ("{{{fd:3}}}", ["fd:3"]),
        ("{{fd:3#nonsense}}", ["fd:3#nonsense"]),
        ("{{fd:0}}", ["fd:0"]),
    ],
)
def test_a_placeholder_is_found_with_its_place(text: str, selectors: list[str]):
    found = placeholders(text)

    assert [one.selector for one in found] == selectors
    for one in found:
        whole = text[one.start : one.end]
        assert whole.startswith("{{")
        assert whole.endswith("}}")
        assert whole[2:-2].strip() == one.selector


OTHER_BRACES = "{fd:3}|{{fd: 3}}|{{ name }}|{{3}}|{{fd:٣}}|{{fd:3 }|{ {fd:3}}|{{FD:3}}|{{ref:}}"


@pytest.mark.parametrize("text", OTHER_BRACES.split("|"))
def test_other_braces_are_plain_text(text: str):
    assert placeholders(text) == []

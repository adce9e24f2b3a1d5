"""The fields of a hash are read by the types of a Struct; invalid values are refused."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from fdstore.errors import DamagedRecord
from fdstore.model.records import Count, ModelPrice, Moment, Ordinal, Record, Total
from fdstore.store.hashes import Hash
from fdstore.store.record_format import UNREADABLE, decode_count, decode_moment, decode_ordinal, decode_total


class Kept(Record, frozen=True, kw_only=True):
    name: str
    count: Count = 0
    size: Ordinal = 1
    total: Total = 0
    at: Moment | None = None
    words: tuple[str, ...] = ()
    price: ModelPrice | None = None
    is_done: bool = False
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


KEPT = Hash(Kept)


def test_every_kind_of_field_is_read_from_its_text() -> None:
    fields = {
        "name": "triage",
        "count": "9007199254740992",
        "size": "1",
        "total": "-3",
        "at": "1700000000.25",
        "words": " a  b\n",
        "price": '{"input": 3, "output": 15}',
        "is_done": "1",
        "share": "0.5",
    }

    assert KEPT.decode(fields) == Kept(
        name="triage",
        count=2**53,
        size=1,
        total=-3,
        at=1700000000.25,
        words=("a", "b"),
        price=ModelPrice(input=3, output=15),
        is_done=True,
        share=0.5,
    )


def test_what_is_missing_or_empty_has_its_default_and_what_is_unknown_is_ignored() -> None:
    empty = dict.fromkeys(Kept.__struct_fields__, "")

    assert KEPT.decode({**empty, "colour": "red"}) == KEPT.decode({"name": ""}) == Kept(name="")


def test_a_known_field_is_not_read() -> None:
    assert KEPT.decode({"name": "hostile", "words": "x"}, name="mine", words=()) == Kept(name="mine")


@pytest.mark.parametrize(
    "value", ["x", "-1", "9007199254740993", "1e400", "nan", "inf", " 1", "1_0", "٣", "+1"]
)
@pytest.mark.parametrize("name", ["count", "size"])
def test_a_number_out_of_its_bounds_or_of_another_form_is_refused(name: str, value: str) -> None:
    with pytest.raises(UNREADABLE, match=f"{name} is '"):
        KEPT.decode({"name": "n", name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("size", "0"), ("total", "-9007199254740993"), ("total", "1.5")),
        *(("at", "-0.5"), ("at", "253402300800"), ("at", "nan"), ("at", "-inf"), ("share", "1.01")),
        *(
            ("price", "null"),
            ("price", "{}"),
            ("price", "[" * 5000),
            ("price", "\ud800"),
            ("is_done", "maybe"),
        ),
    ],
)
def test_a_value_that_its_type_does_not_have_is_refused(name: str, value: str) -> None:
    with pytest.raises(UNREADABLE):
        KEPT.decode({"name": "n", name: value})


def test_a_field_that_must_be_there_is_missed() -> None:
    with pytest.raises(UNREADABLE, match="name"):
        KEPT.decode({"count": "1"})


class Shown(Record, frozen=True, kw_only=True):
    id: str
    program: str | None = None
    count: Count = 0
    size: Ordinal = 1
    at: Moment | None = None


def test_for_people_what_cannot_be_read_has_its_default_and_texts_are_printable() -> None:
    shown = Hash(Shown, "id")

    found = shown.decode_readable([b"a\x1b\xff", b"-1", b"3", b"7.5"], id="triage")

    assert shown.read("key") == ("HMGET", "key", "program", "count", "size", "at")
    assert found == Shown(id="triage", program="a\\u{1b}\\xff", count=0, size=3, at=7.5)
    assert shown.decode_readable([b"", b"x", None, b""], id="triage") == Shown(id="triage")
    assert shown.decode_readable(DamagedRecord("key", "a list"), id="triage") == Shown(id="triage")


@pytest.mark.parametrize(
    "value", [b"x", b"-1", b"9007199254740993", b"1e3", b"nan", b"1_0", b"+1", b"\xff", None]
)
def test_a_number_alone_is_read_within_the_bounds_of_its_type(value: bytes | None) -> None:
    assert (decode_count(b"0"), decode_ordinal("7"), decode_total(-3), decode_moment(b"7.5")) == (
        0,
        7,
        -3,
        7.5,
    )

    with pytest.raises(ValueError, match="is not a whole number"):
        decode_count(value)


def test_some_fields_of_a_hash_have_the_types_that_it_gives_them() -> None:
    some = KEPT.some("size", "name")

    assert some.names == ("size", "name")
    assert (some.decode_values([b"7", b"n"]).size, some.decode_values([None, b"n"]).size) == (7, 1)
    assert (some.decode_readable([b"0", None]).size, some.decode_readable([b"0", None]).name) == (1, None)
    with pytest.raises(UNREADABLE, match="size is '0'"):
        some.decode_values([b"0", b"n"])

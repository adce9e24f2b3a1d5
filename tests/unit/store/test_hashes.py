"""The fields of a hash are read by the types of a Struct; invalid values are refused."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from fdstore.model.hashes import Hash
from fdstore.model.records import Count, ModelPrice, Moment, Ordinal, Record, Total
from fdstore.store.record_format import UNREADABLE


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

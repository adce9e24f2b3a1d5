"""Text in encodings other than UTF-8: decoded in pieces of any size, and detected by its first bytes."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument, NotEncoded
from fdstore.files.source import TextFile
from fdstore.text.encodings import make_decoder, wide_encoding_of
from fdstore.text.media_types import type_of_file

texts = st.text(st.characters(codec="utf-8"), max_size=40)


def read(data: bytes, encoding: str | None, size: int, errors: str = "strict") -> bytes:
    file = TextFile(io.BytesIO(data), encoding, errors)
    return b"".join(iter(lambda: file.read(size), b""))


@given(
    text=texts,
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-be", "utf-32", "utf-7", "gb18030"]),
    size=st.integers(1, 9),
)
def test_a_text_is_the_same_in_whatever_encoding_and_pieces_it_comes(text: str, encoding: str, size: int):
    assert read(text.encode(encoding), encoding, size).decode() == text


@given(data=st.binary(max_size=40), size=st.integers(1, 9))
def test_a_file_without_an_encoding_is_passed_through_unchanged(data: bytes, size: int):
    assert read(data, None, size) == data


@given(text=st.text("aé漢", max_size=9), bad=st.sampled_from([b"\xff", b"\xc3("]), size=st.integers(1, 9))
def test_a_byte_that_is_not_in_the_encoding_is_named_by_its_number(text: str, bad: bytes, size: int):
    with pytest.raises(NotEncoded) as caught:
        read(text.encode() + bad, "utf-8", size)

    assert caught.value.position == len(text.encode()) + 1
    assert read(text.encode() + bad, "utf-8", size, "backslashreplace").startswith(text.encode() + b"\\x")


@given(text=texts.filter(lambda text: not text.startswith("\ufeff")))
def test_ordinary_utf8_is_not_detected_as_another_encoding(text: str):
    if text.count("\0") < 2:
        assert wide_encoding_of(text.encode()) is None
    assert type_of_file(text.encode()) is None or text.startswith(("BZh", "PK\3\4", "GIF8", "%PDF-"))


@pytest.mark.parametrize("name", ["base64", "rot13", "no such", "", "zlib", "undefined"])
def test_an_unknown_encoding_name_is_refused(name: str):
    with pytest.raises(InvalidArgument, match=r"^encoding: "):
        make_decoder(name, "strict")

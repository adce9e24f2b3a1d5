"""Decode hashes of Redis: a Struct is the schema of one.

A field of the Struct is the field of the hash that has its name. Redis holds text, and the type says what the
text is: a number, within its bounds (`records.Count`, `Moment`, ...); words separated by blanks, for a tuple;
JSON, for a Struct. A field that is missing or empty has its default. Fields that the Struct does not have, as
newer versions may write, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.inspect import StrType, StructType, UnionType, VarTupleType, type_info

from fdstore.errors import DamagedRecord, quoted
from fdstore.model.msgspec_types import prepare
from fdstore.store.record_format import UNREADABLE, show_bytes
from fdstore.wire.operation import Command
from fdstore.wire.scripts import text

T = TypeVar("T", bound=msgspec.Struct)

_AT_FIELD = re.compile(r" - at `\$\.(\w+)")
"""Where msgspec says which field it refuses; it does not show the value."""


def pairs(flat: list[bytes]) -> dict[str, str]:
    """Return the reply of HGETALL as a dict."""
    texts = map(bytes.decode, flat)
    return dict(zip(texts, texts, strict=True))


MAX_TEXT_CHARS = 10_000
"""Characters of a text that people are shown of a hash, such as a reason: no list cuts it further."""


class Hash(Generic[T]):
    """A hash with the fields of the Struct `kind`, `names`; those `given` are not in it, they come from
    elsewhere. msgspec inspects the Struct when a hash is first decoded.

    >>> from fdstore.model.records import TokenUsage
    >>> Hash(TokenUsage).decode({"input_tokens": "7", "output_tokens": "", "colour": "red"})
    TokenUsage(input_tokens=7, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
    """

    def __init__(self, kind: type[T], *given: str) -> None:
        self.kind = kind
        self._is_whole = True
        self.names = tuple(name for name in kind.__struct_encode_fields__ if name not in given)

    def some(self, *names: str) -> Hash[Any]:
        """Return the hash with these of its fields alone, of a Struct that has no others."""
        part: Hash[Any] = Hash(self.kind)
        part._is_whole, part.names = False, names
        return part

    @cached_property
    def _schema(self) -> _Schema:
        kind: Any = self.kind if self._is_whole else _with_fields(self.kind, self.names)
        prepare(kind)
        found = type_info(kind)
        assert isinstance(found, StructType)
        fields = [each for each in found.fields if each.encode_name in self.names]
        return _Schema(
            kind,
            [(each.encode_name, not each.required, _reader(each.type)) for each in fields],
            {each.encode_name for each in fields if any(isinstance(of, StrType) for of in _kinds(each.type))},
            {each.encode_name: each.type for each in msgspec.structs.fields(kind)},
            {each.encode_name: each.name for each in fields},
        )

    def read(self, key: str) -> Command:
        """Return the command whose reply `decode_values` and `decode_readable` take."""
        return ("HMGET", key, *self.names)

    def decode(self, fields: Mapping[str, str], /, **known: Any) -> T:
        """Return a hash as the Struct; `known` are fields that are not read from it. Raises one of
        `record_format.UNREADABLE`."""
        schema = self._schema
        for name, is_optional, read in schema.fields:
            if name in fields and name not in known and (fields[name] or not is_optional):
                known[name] = read(fields[name])
        try:
            decoded: T = msgspec.convert(known, schema.kind, strict=False)
            return decoded
        except msgspec.ValidationError as error:
            if (found := _AT_FIELD.search(str(error))) and found[1] in fields:
                raise ValueError(f"{found[1]} is {quoted(fields[found[1]], 40)}") from error
            raise

    def decode_values(self, values: Iterable[bytes | str | None], /, **known: Any) -> T:
        """As `decode`, from the reply to `read`."""
        named = zip(self.names, values, strict=True)
        return self.decode({name: text(value) for name, value in named if value is not None}, **known)

    def decode_readable(self, values: Iterable[bytes | None] | DamagedRecord, /, **known: Any) -> T:
        """As `decode_values`, for people: a field that cannot be read has its default, or None without one,
        and each text is printable.

        >>> from fdstore.model.records import AskCounts
        >>> Hash(AskCounts).decode_readable([b"7", b"some", None])
        AskCounts(total=7, done=0, failed=0)
        """
        named = () if isinstance(values, DamagedRecord) else zip(self.names, values, strict=True)
        fields = {
            name: show_bytes(value, MAX_TEXT_CHARS)
            if name in self._schema.texts
            else value.decode("utf-8", "replace")
            for name, value in named
            if value is not None
        }
        with suppress(*UNREADABLE):
            return self.decode(fields, **known)
        readable: dict[str, Any] = {}
        for name, is_optional, read in self._schema.fields:
            if not is_optional:
                readable[name] = None
            with suppress(*UNREADABLE):
                if shown := fields.get(name):
                    readable[name] = msgspec.convert(read(shown), self._schema.types[name], strict=False)
        made: T = self._schema.kind(
            **{self._schema.attributes.get(name, name): value for name, value in (readable | known).items()}
        )
        return made


class _Schema(NamedTuple):
    kind: Any
    fields: list[tuple[str, bool, Callable[[str], Any]]]
    """The name of each, whether it may be missing, and what reads its text."""
    texts: set[str]
    types: dict[str, Any]
    attributes: dict[str, str]
    """The attribute of each field, which may have another name than the field in Redis."""


def _with_fields(kind: type[msgspec.Struct], names: Iterable[str]) -> type[msgspec.Struct]:
    declared = {each.encode_name: each for each in msgspec.structs.fields(kind)}
    fields: list[Any] = []
    for each in map(declared.__getitem__, names):
        fields.append((each.name, each.type, *(() if each.required else (each.default,))))
    return msgspec.defstruct(f"{kind.__name__}Fields", fields, frozen=True, kw_only=True)


def _kinds(kind: Any) -> tuple[Any, ...]:
    return kind.types if isinstance(kind, UnionType) else (kind,)


def _reader(kind: Any) -> Callable[[str], Any]:
    for each in _kinds(kind):
        if isinstance(each, StructType):
            return msgspec.json.Decoder(each.cls).decode
        if isinstance(each, VarTupleType):
            return str.split
    return str

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
from typing import Any, Generic, TypeVar

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
    elsewhere. Make it when a module is imported, see `msgspec_types`.

    >>> from fdstore.model.records import TokenUsage
    >>> Hash(TokenUsage).decode({"input_tokens": "7", "output_tokens": "", "colour": "red"})
    TokenUsage(input_tokens=7, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
    """

    def __init__(self, kind: type[T], *given: str) -> None:
        prepare(kind)
        found = type_info(kind)
        assert isinstance(found, StructType)
        self.kind = kind
        fields = [each for each in found.fields if each.encode_name not in given]
        self.names = tuple(each.encode_name for each in fields)
        self._fields = [(each.encode_name, not each.required, _reader(each.type)) for each in fields]
        self._texts = {
            each.encode_name
            for each in fields
            if any(isinstance(kind, StrType) for kind in _kinds(each.type))
        }
        self._declared = {each.encode_name: each for each in msgspec.structs.fields(kind)}

    def some(self, *names: str) -> Hash[Any]:
        """Return the hash with these of its fields alone, of a Struct that has no others."""
        fields: list[Any] = []
        for declared in map(self._declared.__getitem__, names):
            default = () if declared.required else (declared.default,)
            fields.append((declared.name, declared.type, *default))
        return Hash(msgspec.defstruct(f"{self.kind.__name__}Fields", fields, frozen=True, kw_only=True))

    def read(self, key: str) -> Command:
        """Return the command whose reply `decode_values` and `decode_readable` take."""
        return ("HMGET", key, *self.names)

    def decode(self, fields: Mapping[str, str], /, **known: Any) -> T:
        """Return a hash as the Struct; `known` are fields that are not read from it. Raises one of
        `record_format.UNREADABLE`."""
        for name, is_optional, read in self._fields:
            if name in fields and name not in known and (fields[name] or not is_optional):
                known[name] = read(fields[name])
        try:
            return msgspec.convert(known, self.kind, strict=False)
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
            if name in self._texts
            else value.decode("utf-8", "replace")
            for name, value in named
            if value is not None
        }
        with suppress(*UNREADABLE):
            return self.decode(fields, **known)
        readable: dict[str, Any] = {}
        for name, is_optional, read in self._fields:
            if not is_optional:
                readable[name] = None
            with suppress(*UNREADABLE):
                if shown := fields.get(name):
                    kind = self._declared[name].type
                    readable[name] = msgspec.convert(read(shown), kind, strict=False)
        return self.kind(**readable | known)


def _kinds(kind: Any) -> tuple[Any, ...]:
    return kind.types if isinstance(kind, UnionType) else (kind,)


def _reader(kind: Any) -> Callable[[str], Any]:
    for each in _kinds(kind):
        if isinstance(each, StructType):
            return msgspec.json.Decoder(each.cls).decode
        if isinstance(each, VarTupleType):
            return str.split
    return str

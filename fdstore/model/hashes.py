"""Decode hashes of Redis: a Struct is the schema of one.

A field of the Struct is the field of the hash that has its name. Redis holds text, and the type says what the
text is: a number, within its bounds (`records.Count`, `Moment`, ...); words separated by blanks, for a tuple;
JSON, for a Struct. A field that is missing or empty has its default. Fields that the Struct does not have, as
newer versions may write, are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.inspect import StructType, UnionType, VarTupleType, type_info

from fdstore.errors import quoted
from fdstore.model.msgspec_types import prepare

T = TypeVar("T")

_AT_FIELD = re.compile(r" - at `\$\.(\w+)")
"""Where msgspec says which field it refuses; it does not show the value."""


class Hash(Generic[T]):
    """A hash with the fields of the Struct `kind`. Make it when a module is imported, see `msgspec_types`.

    >>> from fdstore.model.records import TokenUsage
    >>> Hash(TokenUsage).decode({"input_tokens": "7", "output_tokens": "", "colour": "red"})
    TokenUsage(input_tokens=7, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
    """

    def __init__(self, kind: type[T]) -> None:
        prepare(kind)
        found = type_info(kind)
        assert isinstance(found, StructType)
        self._kind = kind
        self._fields = [(each.encode_name, not each.required, _reader(each.type)) for each in found.fields]

    def decode(self, fields: Mapping[str, str], /, **known: Any) -> T:
        """Return a hash as the Struct; `known` are fields that are not read from it. Raises one of
        `record_format.UNREADABLE`."""
        for name, is_optional, read in self._fields:
            if name in fields and name not in known and (fields[name] or not is_optional):
                known[name] = read(fields[name])
        try:
            return msgspec.convert(known, self._kind, strict=False)
        except msgspec.ValidationError as error:
            if (found := _AT_FIELD.search(str(error))) and found[1] in fields:
                raise ValueError(f"{found[1]} is {quoted(fields[found[1]], 40)}") from error
            raise


def _reader(kind: Any) -> Callable[[str], Any]:
    kinds = kind.types if isinstance(kind, UnionType) else (kind,)
    for each in kinds:
        if isinstance(each, StructType):
            return msgspec.json.Decoder(each.cls).decode
        if isinstance(each, VarTupleType):
            return str.split
    return str

"""The fields of a descriptor that neither `fdstore stat` nor its page lays out: they are shown by their
declaration, so that people see a new field wherever they see its descriptor."""

from __future__ import annotations

import msgspec
from msgspec.inspect import UnionType, type_info

from fdstore.model.records import Descriptor, Moment
from fdstore.text.quantities import moment

LAID_OUT = frozenset(
    {
        *("fd", "state", "kind", "media_type", "bytes", "chars", "lines", "pages", "page_size"),
        *("source", "producer", "origin", "created_at", "reason", "exit_code", "chain"),
    }
)

_MOMENT = type_info(Moment)


def other_fields(descriptor: Descriptor) -> list[tuple[str, str]]:
    """Return the label and the text of each field that is not in `LAID_OUT` and has another value than its
    default."""
    found = []
    for each in msgspec.structs.fields(descriptor):
        value = getattr(descriptor, each.name)
        if each.name not in LAID_OUT and value != each.default:
            kind = type_info(each.type)
            is_moment = _MOMENT in (kind.types if isinstance(kind, UnionType) else (kind,))
            label = each.name.removesuffix("_at" if is_moment else "").replace("_", " ")
            found.append((label, moment(value) if is_moment else str(value)))
    return found

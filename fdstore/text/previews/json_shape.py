"""The shape of JSON: keys, types and counts, of one document or of a document in each line.

Of a document that is cut, the part before the cut is closed where its last value ends, and parsed: so its
counts are those of the part, exactly. Whatever the parser refuses is not JSON. A pointer shows how a part is
read.

    [{"id": 1, "tags": ["a", "b  ->  [{"id": 1, "tags": ["a"]}]
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fdstore.text.json_pointer import pointer_to
from fdstore.text.layout import show_controls_in_json
from fdstore.text.previews.extremes import are_dates, between
from fdstore.text.previews.json_parts import (
    REFUSALS,
    PartOfArray,
    PartOfObject,
    decode_lines,
    decode_part,
)
from fdstore.text.previews.sample import JUDGED_LINES, SHORT_CHARS, Outline, Sample, part_of

PART_CHARS = 100_000
"""The characters of a cut document that are looked at."""

MAX_CUT_DEPTH = 100
"""A cut document that is nested deeper than this has no shape."""

SHOWN_DEPTH = 8
SHOWN_KEYS = 30
"""An object with more keys than this is shown as a map: some of its keys, and the shape of all values."""

_KEYS_OF_A_MAP = 5
_KEY_CHARS, _EXAMPLE_CHARS = 60, 60
_MAX_SHOWN_LINES = 200

_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|["\[\]{},]', re.DOTALL)
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.$@-]{1,60}")


def json_shape(sample: Sample) -> Outline | None:
    """Describe one JSON object or array."""
    if not sample.head.lstrip(" \t\n\r").startswith(("{", "[")):
        return None
    if sample.whole and (found := decode_part(sample.head_bytes)):
        return _outline(found, "all")
    if sample.whole and sample.chars <= SHORT_CHARS:
        return None
    kept, ends = _close(sample.head[:PART_CHARS])
    found = _parse(sample.head[:kept] + ends)
    return _outline(found, f"chars 1-{kept}") if ends and found and found[0] else None


def _outline(found: list[Any], of: str) -> Outline | None:
    if not isinstance(found[0], (dict, list)):
        return None
    lines = [] if of == "all" else ["the text goes on; these are the counts of this part alone"]
    at = len(lines)
    _describe("", found, "", lines)
    lines[at + 1 : at + 1] = _part_of(found[0], ())
    return Outline(kind="json shape", of=of, lines=lines)


def json_lines_shape(sample: Sample) -> Outline | None:
    """Describe a text of which each line that is looked at is a JSON object or array."""
    if len(sample.first) < 2 or not sample.first[0].lstrip(" \t\r").startswith(("{", "[")):
        return None
    # most texts are none, which the first lines show
    if not all(map(_is_container, sample.first[:JUDGED_LINES])):
        return None
    values: list[Any] = []
    total = 0
    for span in sample.spans:
        lines = decode_lines(span.data, span.last - span.first + 1)
        if lines is None or not all(isinstance(each, (dict, list)) for each in lines):
            return None
        total += lines.total
        values += lines
    of = sample.range_of_spans()
    of_all = f"{sample.total_lines}" if len(values) == total else f"{total}, all of which are JSON"
    described = [f"JSON in each line: {len(values)} looked at, of {of_all}{part_of(of)}"]
    _describe("a line", values, "", described)
    if sample.spans[0].first == 1:
        described[1:1] = _part_of(values[0], (0,))
    return Outline(kind="json lines shape", of=of, lines=described)


def _part_of(value: Any, parts: tuple[str | int, ...]) -> list[str]:
    """Return a line with the selector of a value that lies in the largest containers of the one at `parts`;
    none if it has no values."""
    begin = parts
    while len(parts) < SHOWN_DEPTH:
        if isinstance(value, list) and value:
            key: str | int = 0
        elif isinstance(value, dict) and (keys := [key for key in value if _is_shown(key)]):
            key = max(keys, key=lambda key: _weight(value[key]))
        else:
            break
        value, parts = value[key], (*parts, key)
    return [] if parts == begin else [f"a part of it: #J{pointer_to(parts)}"]


def _is_shown(key: str) -> bool:
    return key.isprintable() and len(key) <= _KEY_CHARS


def _weight(value: Any) -> tuple[bool, int]:
    if isinstance(value, (list, dict)) and value:
        return True, _size(value)
    return False, len(value) if isinstance(value, str) else 0


def _is_container(line: str) -> bool:
    found = _parse(line)
    return bool(found) and isinstance(found[0], (dict, list))


def _parse(text: str) -> list[Any]:
    """Return the value of a JSON document, alone in a list; nothing if it is none."""
    try:
        return [msgspec.json.decode(text)]
    except REFUSALS:
        return []


def _close(head: str) -> tuple[int, str]:
    """Return how much to keep of the beginning of a JSON document so that it ends with a whole value, and
    what closes it there; nothing if it is none. The last item of the outermost array is kept only if it is
    whole, so that all items count alike."""
    open_ends: list[str] = []
    commas: list[int] = []  # the last comma of each
    kept = 0  # nothing opens or closes between here and the cut
    for mark in _MARK.finditer(head):
        match head[mark.start()]:
            case "{" | "[" as opening:
                open_ends.append("}" if opening == "{" else "]")
                commas.append(0)
                if len(open_ends) > MAX_CUT_DEPTH:
                    return 0, ""
                kept = mark.end()
            case "}" | "]" as closing:
                if not open_ends or open_ends.pop() != closing:
                    return 0, ""
                commas.pop()
                kept = mark.end()
            case "," if open_ends:
                kept = commas[-1] = mark.start()
            case '"' if mark.end() == mark.start() + 1:
                break  # the cut is inside this string
        if not open_ends:
            return 0, ""  # the document ends before the text does
    for depth, comma in enumerate(commas[:-1], 1):
        if comma and open_ends[depth - 1] == "]":
            return comma, "".join(reversed(open_ends[:depth]))
    return kept, "".join(reversed(open_ends))


def _describe(label: str, values: list[Any], indent: str, lines: list[str]) -> None:
    """Add the lines for the values that stand in one place of the document, in all of its objects."""
    if len(lines) >= _MAX_SHOWN_LINES:
        return
    by_type: dict[str, list[Any]] = {}
    for value in values:
        by_type.setdefault(_TYPES[type(value)], []).append(value)
    named = f"{label}: " if label else ""
    types = ", ".join(_counted(name, found, len(values)) for name, found in by_type.items())
    lines.append(f"{indent}{named}{types}")
    if len(indent) >= 2 * SHOWN_DEPTH:
        return
    if objects := by_type.get("object"):
        _describe_keys(objects, indent + "  ", lines)
    arrays = by_type.get("array", ())
    if items := [item for array in arrays for item in array]:
        total = sum(map(_size, arrays))
        label = "an item" if total == 1 else f"its {total} items"
        if len(items) < total:
            label = f"{len(items)} of {label}"
        _describe(label, items, indent + "  ", lines)


def _counted(name: str, found: list[Any], total: int) -> str:
    """Return a type with how many values have it, and the least and the greatest, the size, or an example."""
    count = "" if total == 1 else f"{len(found)} " if len(found) < total else f"{total} "
    text = f"{count}{name}{'s' if total > 1 and len(found) != 1 and name != 'null' else ''}"
    if name == "array":
        sizes = set(map(_size, found))
        return f"{text} of {min(sizes)}" + (f" to {max(sizes)}" if len(sizes) > 1 else "")
    if name == "object":
        return text if found[0] or total > 1 else f"{text} without keys"
    if name == "null":
        return text
    if len(found) > 1 and name in ("integer", "number"):
        return f"{text}, {between(_json(min(found), _EXAMPLE_CHARS), _json(max(found), _EXAMPLE_CHARS))}"
    if len(found) > 1 and name == "string" and are_dates(found):
        return f"{text}, dates, {between(min(found), max(found))}"
    return f"{text}, e.g. {_json(found[0], _EXAMPLE_CHARS)}"


def _describe_keys(objects: list[dict[str, Any]], indent: str, lines: list[str]) -> None:
    keys: dict[str, list[Any]] = {}
    for each in objects:
        for key, value in each.items():
            keys.setdefault(key, []).append(value)
    if len(keys) > SHOWN_KEYS:
        some = ", ".join(_key(key) for key, _ in zip(keys, range(_KEYS_OF_A_MAP), strict=False))
        values = [value for found in keys.values() for value in found]
        total = max(len(keys), *map(_size, objects))
        is_part = any(isinstance(each, PartOfObject) for each in objects)
        count = f"at least {total}" if is_part and len(objects) > 1 else str(total)
        whose = f"the values of {len(keys)} of them" if is_part else "their values"
        _describe(f"{count} keys, {some}, ...; {whose}", values, indent, lines)
        return
    for key, found in keys.items():
        missing = f" (in {len(found)} of {len(objects)})" if len(found) < len(objects) else ""
        _describe(_key(key) + missing, found, indent, lines)


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _json(key, _KEY_CHARS)


def _json(value: Any, limit: int) -> str:
    """Return a scalar as JSON, cut."""
    if isinstance(value, str):
        left_out = len(value) - limit
        shown = msgspec.json.encode(value[:limit]).decode()
        return show_controls_in_json(shown) + (f"... ({left_out} characters more)" if left_out > 0 else "")
    return msgspec.json.encode(value).decode()


def _size(value: Any) -> int:
    """Return how many items or keys an array or object has in the document."""
    return value.total if isinstance(value, (PartOfArray, PartOfObject)) else len(value)


_TYPES = {
    dict: "object",
    PartOfObject: "object",
    list: "array",
    PartOfArray: "array",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}

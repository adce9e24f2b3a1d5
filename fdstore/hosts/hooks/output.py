"""An output of a tool, as a hook found it in its host's event.

A host starts `fdstore hook` after each call, most of which return little. So this module and those of the
hosts import nothing that takes long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any, TypeAlias

import msgspec

from fdstore.text.layout import reindent_json
from fdstore.text.surrogates import show_lone_surrogates

Event: TypeAlias = dict[str, Any]
"""A hook event, decoded from JSON and not trusted."""

Answer: TypeAlias = dict[str, Any]
"""The answer to the host, to be encoded as JSON."""

SOURCE_CHARS = 120


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output that may be replaced.

    value    a text or content blocks, as `Toolset.offload` takes them
    file     the path of a file with the whole of it, if `value` is only a part
    is_json  whether that file is the JSON of a structured result, or of a list of blocks
    source   the tool, and what identifies the call for a person: `Bash: make test`
    call_id  identifies the call and its output; None if the host gives calls no ids
    session  the host's session
    answer   returns the host's answer that replaces the output by this text, or these blocks
    """

    value: str | list[Any]
    source: str
    answer: Callable[[str | list[Any]], Answer]
    file: str | None = None
    is_json: bool = False
    call_id: str | None = None
    session: str = ""


def decoded(data: bytes, type: Any = Any) -> Any:
    r"""Return the value of JSON text, of this type. A host that is written in JavaScript cuts texts in the
    middle of characters; these halves are shown as `\udXXX`. A number beyond all floats is an infinity.
    Raises `msgspec.DecodeError`, `RecursionError`.

    >>> decoded(rb'["cut \ud83d"]'), decoded(b"[1e400]")
    (['cut \\ud83d'], [inf])
    """
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.DecodeError:
        data = show_lone_surrogates(data)
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.ValidationError as error:
        if type is not Any:
            raise
        try:
            return json.loads(data.decode("utf-8"), parse_constant=_refuse)
        except ValueError:
            raise error from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def text_field(event: Event, name: str) -> str:
    """Return a field of an event if it is a text, else "".

    >>> text_field({"cwd": "/src", "session_id": 7}, "cwd"), text_field({"session_id": 7}, "session_id")
    ('/src', '')
    """
    value = event.get(name)
    return value if isinstance(value, str) else ""


def source_of(tool: str, arguments: object) -> str:
    r"""Return the source of an output: the tool, and the argument that tells a person which call it was.

    >>> source_of("Bash", {"command": "make test\n", "timeout": 5}), source_of("mcp__github__list", None)
    ('Bash: make test', 'mcp__github__list')
    """
    named = arguments if isinstance(arguments, dict) else {}
    names = ("command", "cmd", "url", "pattern", "query", "path", "file_path", "description")
    said = next((value for name in names if isinstance(value := named.get(name), str) and value), "")
    first = said.strip().partition("\n")[0]
    return f"{tool}: {first}"[:SOURCE_CHARS] if first else tool[:SOURCE_CHARS]


def call_id_of(event: Event, output: object) -> str | None:
    """Return an id of the call, or None if the host gives none. A host may run two hooks for one call, and
    some models restart the numbers of calls in each session or turn, so it contains the session and the
    output, too."""
    call = text_field(event, "tool_use_id")
    if not call:
        return None
    digest = sha256(json.dumps(output).encode()).hexdigest()[:16]
    return f"{text_field(event, 'session_id')}/{call}/{digest}"


def is_long(value: object, limit: int) -> bool:
    """Return whether a text, or the texts of these blocks together, are longer than `limit` characters.

    >>> is_long("abc", 2), is_long([{"type": "text", "text": "abc"}, {"type": "image"}], 2), is_long(None, 2)
    (True, True, False)
    >>> is_long([{"type": "text", "text": "ab"}] * 2, 2)
    True
    """
    if isinstance(value, str):
        return len(value) > limit
    blocks = value if isinstance(value, list) else ()
    lengths = [len(text) for block in blocks if (text := text_of(block)) is not None]
    return sum(lengths) + len(lengths) - 1 > limit


def text_of(block: object) -> str | None:
    """Return the text of a block, or of the resource in it; None if it has none.

    >>> text_of({"type": "text", "text": "a"}), text_of({"type": "resource", "resource": {"text": "b"}})
    ('a', 'b')
    """
    if not isinstance(block, dict):
        return None
    if block.get("type") == "resource":
        block = block.get("resource")
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else None


def blocks_of_texts(texts: Sequence[str], limit: int, separator: str = "\n") -> str | list[Any]:
    """Return the texts of an output, for which a host takes one text back: blocks that are judged one by one;
    one text if there is no other. Neighbours of at most `limit` characters are joined, so that no two texts
    that stay inline can make an element of ours together.

    >>> blocks_of_texts(["a", "b"], 2), [block["text"] for block in blocks_of_texts(["a", "b", "long"], 2)]
    ('a\\nb', ['a\\nb', 'long'])
    """
    joined: list[str] = []
    for is_short, run in groupby(texts, lambda text: len(text) <= limit):
        found = list(run)
        joined += [separator.join(found)] if is_short else found
    return joined[0] if len(joined) == 1 else [{"type": "text", "text": text} for text in joined]


def joined_texts(blocks: list[Any]) -> str | None:
    """Return the texts of blocks, joined by LF; None if there are other blocks.

    >>> joined_texts([{"type": "text", "text": "a"}]), joined_texts([{"type": "image"}])
    ('a', None)
    """
    texts = [
        block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        for block in blocks
    ]
    found = [text for text in texts if isinstance(text, str)]
    return "\n".join(found) if len(found) == len(texts) else None


def text_blocks(text: str) -> list[Any]:
    """Return the blocks in a JSON that is a list of several text blocks; none of another text.

    >>> len(text_blocks('[{"type":"text","text":"a"},{"type":"text","text":"b"}]')), text_blocks('["a","b"]')
    (2, [])
    """
    try:
        value = msgspec.json.decode(text) if text[:1] == "[" else []
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return []
    return value if len(value) > 1 and joined_texts(value) is not None else []


def readable(text: str) -> str:
    r"""Return a text as a model reads it best: of JSON that is blocks, or a result that is one text, that
    text, as is one that is a text itself; other JSON indented, so that it has lines.

    >>> readable('{"result":"one\\ntwo"}'), readable('{"rows":[]}'), readable("plain")
    ('one\ntwo', '{\n  "rows": []\n}', 'plain')
    """
    if text[:1] not in ("{", "[", '"'):
        return text
    try:
        value = msgspec.json.decode(text)
    except msgspec.ValidationError:  # a number beyond all floats
        value = None
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("result"), str):
        return str(value["result"])  # as servers wrap a text
    if isinstance(value, list) and value and (joined := joined_texts(value)) is not None:
        return joined
    return reindent_json(text) or text

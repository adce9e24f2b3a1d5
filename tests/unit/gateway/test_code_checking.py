"""Mistakes in calls of tools, found before a program runs."""

from __future__ import annotations

import pytest

from fdstore.errors import InvalidArgument
from fdstore.integrations.gateway.code.catalogue import Catalogue, read_tools
from fdstore.integrations.gateway.code.checking import check_code

GIVEN = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "state": {"enum": ["open", "closed"]},
        "labels": {"type": ["array", "null"]},
        "score": {"type": "number"},
    },
    "required": ["query"],
}
CATALOGUE = Catalogue(
    [
        *read_tools("docs", [{"name": "find", "inputSchema": GIVEN}], ("*",)),
        *read_tools("docs", [{"name": "open_", "inputSchema": {"type": "object"}}], ("*",)),
        *read_tools(
            "docs",
            [{"name": "more", "inputSchema": {**GIVEN, "additionalProperties": {"type": "string"}}}],
            ("*",),
        ),
        *read_tools("disk", [{"name": "remove", "inputSchema": {"type": "object"}}], ()),
    ]
)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            "x = 1\nawait docs.fnd(query='a')",
            "line 2: there is no tool docs.fnd; did you mean docs.find(query",
        ),
        ("f = docs.nothing", "line 1: there is no tool docs.nothing; there are: docs.find, docs.open_"),
        ("await docs.find(qery='a')", "line 1: docs.find takes no argument 'qery': docs.find(query: str"),
        ("await docs.find(limit=3)", "line 1: docs.find needs the argument 'query'"),
        ("await docs.find('a')", "line 1: docs.find takes its arguments by name"),
        ("await docs.find(query=3)", "line 1: docs.find does not take query=3"),
        ("await docs.find(query='a', limit='3')", "line 1: docs.find does not take limit='3'"),
        ("await docs.find(query='a', limit=True)", "line 1: docs.find does not take limit=True"),
        ("await docs.find(query='a', state='shut')", "line 1: docs.find does not take state='shut'"),
        ("await docs.find(query=None)", "line 1: docs.find does not take query=None"),
        ("docs.find(query='a')", "line 1: docs.find: nothing awaits this call"),
        ("await disk.remove()", "line 1: disk.remove: it may change things"),
        ("def f():\n    return disk.remove", "line 2: disk.remove: it may change things"),
        ("[await docs.find() for x in y]", "line 1: docs.find needs the argument 'query'"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_right_signature(code: str, problem: str) -> None:
    with pytest.raises(InvalidArgument) as told:
        check_code(code, CATALOGUE)

    assert str(told.value).startswith(f"code: {problem}")
    assert str(told.value).endswith("; nothing was run")


@pytest.mark.parametrize(
    "code",
    [
        "await docs.find(query=anything)",
        "await docs.find(query='a', labels=None, score=3, limit=2)",
        "await docs.find(query='a', **more)",
        "await docs.find(**everything)",
        "calls = [docs.find(query=each) for each in words]\nawait asyncio.gather(*calls)",
        "task = docs.find(query='a')\nawait task",
        "await docs.open_(anything=1)",
        "await docs.more(query='a', other='b')",
        "docs = {}\ndocs.nothing",
        "for docs in fds():\n    docs.nothing",
        "def f(docs):\n    docs.nothing",
        "import docs\ndocs.nothing",
        "from a import b as docs\ndocs.nothing",
        "try:\n    pass\nexcept E as docs:\n    docs.nothing",
        "match x:\n    case docs:\n        docs.nothing",
        "unknown.nothing()",
        "this is not python",
        "x = '\0'",
        "(" * 10_000,
    ],
)
def test_nothing_else_stops_a_program(code: str) -> None:
    check_code(code, CATALOGUE)

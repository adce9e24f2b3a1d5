"""Mistakes in calls of tools, found before a program runs."""

from __future__ import annotations

import pytest

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.code.catalogue import Catalogue, read_tools
from fdstore.hosts.gateway.code.checking import check_code, problem_with

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
    ("code", "problem"),
    [
        ("x = 1\nawait dcs.find(query='a')", "line 2: there is no server dcs; did you mean docs.find(query"),
        ("await gather(dosc.nothing())", "line 1: there is no server dosc; did you mean docs?"),
        ("await hub.open_()", "line 1: there is no server hub; did you mean docs.open_() -> str | Text?"),
        ("await hub.nothing()", "line 1: there is no server hub; there are: docs, disk"),
        ("[web.find(query=x) for x in y]", "line 1: there is no server web; did you mean docs.find(query"),
    ],
)
def test_a_name_that_is_used_as_a_server_is_told_with_what_is_meant(code: str, problem: str) -> None:
    [unknown] = check_code(code, CATALOGUE)

    assert str(unknown.problem).startswith(f"code: {problem}")


@pytest.mark.parametrize(
    "code",
    [
        "await docs.find(query='a')",
        "unknown.nothing()",
        "await asyncio.sleep(1)\nre.find('a')",
        "dcs = docs\nawait dcs.find(query='a')",
        "async def f(dcs):\n    await dcs.find(query='a')",
        "exec('dcs = docs')\nawait dcs.find(query='a')",
        "from tools import *\nawait dcs.find(query='a')",
        "await fd('fd:1').find()",
    ],
)
def test_other_names_are_no_servers(code: str) -> None:
    assert check_code(code, CATALOGUE) == []


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
BY_ID = {"type": "object", "properties": {"id": NUMBER}, "required": ["id"]}
BY_NAME = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
PAGE = {"type": "object", "properties": {"page": NUMBER}}
CLOSED = {"additionalProperties": False}


def problem_of(schema: object, **arguments: object) -> str:
    [tool] = read_tools("docs", [{"name": "find", "inputSchema": schema}], ("*",))
    return problem_with(tool, arguments)


@pytest.mark.parametrize("name", ["anyOf", "oneOf"])
def test_arguments_of_one_of_several_alternatives_are_right(name: str) -> None:
    schema = {"type": "object", name: [BY_ID, {**BY_NAME, **CLOSED}, {"type": "null"}], **PAGE}

    assert problem_of(schema, id=1) == problem_of(schema, name="a", page=2) == ""
    assert "docs.find needs the argument 'id'" in problem_of(schema, page=2)
    assert "does not take name=3" in problem_of(schema, name=3)
    assert "does not take page='2'" in problem_of(schema, id=1, page="2")
    assert "takes no argument 'nme'" in problem_of(schema, nme="a")
    assert "docs.find(page: int = ..., id: int = ..., name: str = ...)" in problem_of(schema)


def test_all_of_and_references_are_one_set_of_arguments() -> None:
    root = {"$ref": "#/$defs/Find~1it", "$defs": {"Find/it": {"allOf": [BY_ID, {**PAGE, **CLOSED}]}}}

    assert problem_of(root, id=1, page=2) == problem_of(root, id=1) == ""
    assert "needs the argument 'id'" in problem_of(root, page=2)
    assert "takes no argument 'other'" in problem_of(root, id=1, other=2)
    assert "docs.find(id: int, page: int = ...) -> str" in problem_of(root)


def test_further_arguments_are_right_unless_the_schema_excludes_them() -> None:
    for schema in (
        PAGE,
        {**PAGE, "additionalProperties": TEXT},
        {**PAGE, **CLOSED, "patternProperties": PAGE},
    ):
        assert problem_of(schema, page=1, more=2) == ""
    for closed in (CLOSED, {"unevaluatedProperties": False}):
        assert "takes no argument 'more'" in problem_of({**PAGE, **closed}, page=1, more=2)
    assert "takes no argument 'more'" in problem_of(CLOSED, more=2)


@pytest.mark.parametrize(
    "schema",
    [
        *(None, True, False, [], "object", {}, {"type": "object"}, {"properties": 3, "required": "id"}),
        *({"$ref": "https://example.com/a.json"}, {"$ref": "#/nowhere"}, {"$ref": 3}, {"$ref": "#"}),
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"allOf": [{"$ref": "#"}] * 50},
        {"anyOf": [True, BY_ID]},
        {"anyOf": [False, 3, {"type": "string"}]},
        {"$ref": "#/anyOf/1", "anyOf": [BY_ID, {}]},
    ],
)
def test_a_schema_that_rules_nothing_takes_any_argument(schema: object) -> None:
    assert problem_of(schema, anything=1) == ""


def test_a_schema_without_an_end_is_looked_at_for_a_bounded_time() -> None:
    def nest(schema: dict[str, object], times: int) -> dict[str, object]:
        return (
            nest({"anyOf": [schema] * 9, "properties": {f"p{times}": schema}}, times - 1) if times else schema
        )

    loop = {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "array", "items": {"$ref": "#/$defs/A"}}] * 9}
    for schema in (
        nest({"type": "string"}, 12),
        {"properties": {f"p{n}": {"$ref": "#/$defs/A"} for n in range(2000)}, "$defs": {"A": loop}},
        {"$ref": "#/$defs/A", "$defs": {"A": loop}},
    ):
        [tool] = read_tools("docs", [{"name": "find", "inputSchema": schema}], ("*",))
        assert len(tool.signature) < 5000
        assert len(Catalogue([tool]).find("docs.find")) < 50_000
        assert problem_with(tool, {}) == ""


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

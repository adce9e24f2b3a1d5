"""The tools of servers as functions for code: names, signatures, and what a search finds."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.hosts.gateway.code.catalogue import MAX_FOUND, Catalogue, read_tools
from fdstore.hosts.gateway.code.signatures import signature, type_of

READS = {"annotations": {"readOnlyHint": True}}


def listed(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({}, "Any"),
        (True, "Any"),
        ({"type": "string"}, "str"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "list[list[float]]"),
        ({"const": 3}, "Literal[3]"),
        ({"enum": list(range(20))}, f"Literal[{', '.join(map(str, range(12)))}, ...]"),
        ({"type": "object", "properties": {"a b": {"type": "boolean"}}}, '{"a b": bool}'),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "dict"),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, "str"),
        ({"anyOf": [{"type": "string"}, {}]}, "Any"),
        ({"$ref": "#/$defs/Day"}, 'Literal["Mon"]'.replace('"', "'")),
        ({"$ref": "#/$defs/Loop"}, "Any"),
        ({"$ref": "#/nowhere"}, "Any"),
        ({"$ref": "https://example.com/schema"}, "Any"),
    ],
)
def test_a_schema_is_shown_as_a_type(schema: Any, shown: str) -> None:
    root = {"$defs": {"Day": {"enum": ["Mon"]}, "Loop": {"$ref": "#/$defs/Loop"}}}

    assert type_of(schema, root) == shown


def test_a_type_that_contains_itself_has_an_end() -> None:
    root: dict[str, Any] = {
        "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}}
    }

    assert len(type_of({"$ref": "#/$defs/Tree"}, root)) < 200


def test_required_arguments_come_first_and_others_show_their_defaults() -> None:
    given = {
        "properties": {
            "limit": {"type": "integer", "default": 10},
            "page-size": {"type": "integer"},
            "query": {"type": "string"},
        },
        "required": ["query", "undeclared"],
    }

    assert signature("docs.find", given, {"type": "object"}) == (
        'docs.find(query: str, limit: int = 10, "page-size": int = ..., undeclared: Any) -> dict'
    )


def test_tools_get_python_names_that_are_theirs_alone() -> None:
    tools = read_tools("docs", map(listed, ["get-page", "get_page", "class", "ask", "3d", "Über"]), ())

    assert [tool.name for tool in tools] == [
        *("docs.get_page", "docs.get_page_2", "docs.class_", "docs.ask_", "docs._3d", "docs.Über")
    ]
    assert [tool.tool for tool in tools] == ["get-page", "get_page", "class", "ask", "3d", "Über"]


def test_only_tools_that_read_or_that_the_operator_names_are_allowed() -> None:
    tools = [
        listed("reads", annotations={"readOnlyHint": True}),
        listed("says nothing"),
        listed("changes", annotations={"readOnlyHint": False}),
        listed("odd", annotations={"readOnlyHint": "true"}),
        listed("write_file"),
        listed("write_all", annotations={"destructiveHint": True}),
    ]

    def allowed(*patterns: str) -> list[str]:
        return [tool.tool for tool in read_tools("disk", tools, patterns) if tool.allowed]

    assert allowed() == ["reads"]
    assert allowed("write_*") == ["reads", "write_file", "write_all"]
    assert allowed("disk.write_file") == ["reads", "write_file"]
    assert allowed("other.*") == ["reads"]
    assert allowed("*") == [each["name"] for each in tools]


def test_what_a_server_lists_wrongly_is_left_out_or_has_no_schema() -> None:
    listed_wrongly: list[Any] = [{}, {"name": 3}, {"name": "a", "inputSchema": [], "description": 7}]

    [tool] = read_tools("docs", listed_wrongly, ())

    assert (tool.signature, tool.description) == ("docs.a() -> str | Text", "")


def test_words_find_tools_by_name_before_description() -> None:
    tools = [
        listed("list_issues", description="All issues.", **READS),
        listed("search", description="Find pages, issues and users.", **READS),
        listed("close", description="End it."),
    ]
    catalogue = Catalogue(read_tools("hub", tools, ()))

    assert catalogue.find("issues").splitlines() == [
        *("hub.list_issues() -> str | Text", "    All issues."),
        *("hub.search() -> str | Text", "    Find pages, issues and users."),
    ]
    assert "--code-allow hub.close" in catalogue.find("close")
    assert catalogue.find("weather") == (
        "No tool fits 'weather'. There are: hub.list_issues, hub.search, hub.close"
    )
    assert catalogue.find("").count("hub.") == 4  # with that of the advice


def test_a_name_finds_the_whole_documentation() -> None:
    tool = listed("find", description="Find pages.\n\nBest first.", outputSchema={"type": "object"}, **READS)
    tool["inputSchema"] = {"properties": {"query": {"type": "string", "description": "Words."}}}
    catalogue = Catalogue(read_tools("docs", [tool], ()))

    assert (
        catalogue.find("docs.find")
        == catalogue.find(" find ")
        == (
            "docs.find(query: str = ...) -> dict\n\nFind pages.\n\nBest first.\n\nquery: Words.\n\n"
            'Returns: {"type": "object"}'
        )
    )


def test_a_search_that_finds_many_names_the_others() -> None:
    catalogue = Catalogue(read_tools("hub", [listed(f"tool{n}", **READS) for n in range(500)], ()))

    found = catalogue.find("tool")

    assert found.count(" -> str") == MAX_FOUND
    assert found.splitlines()[-1].startswith(f"{500 - MAX_FOUND} more: hub.tool{MAX_FOUND}, ")
    assert len(found) < 4000

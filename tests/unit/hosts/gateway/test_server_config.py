"""The servers of a configuration that one gateway serves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.server_config import read_servers, server_name
from fdstore.hosts.gateway.wrap import wrap_config

LAUNCHER = ["/py", "-m", "fdstore"]


def read(servers: dict[str, Any], **environment: str) -> tuple[list[Any], list[str]]:
    return read_servers(json.dumps({"mcpServers": servers}), LAUNCHER, environment)


def test_an_entry_is_a_command_with_its_variables_and_directory() -> None:
    [start], _ = read(
        {
            "my-git": {
                "command": "${BIN:-git}-mcp",
                "args": ["${env:REPO}"],
                "env": {"A": "${REPO}"},
                "cwd": "/x",
            }
        },
        REPO="/repo",
    )

    assert start.name == "my_git"
    assert start.command == ("git-mcp", "/repo")
    assert (start.env, start.directory) == ({"A": "/repo"}, "/x")


def test_a_url_is_a_gateway_that_stores_nothing_and_has_the_secrets_in_its_environment() -> None:
    url = "https://ann:pw@example.com/mcp?key=s"
    [start], _ = read(
        {"docs": {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${T}"}}}, T="t"
    )

    assert start.command[:4] == (*LAUNCHER, "gateway")
    assert start.command[-2:] == ("--http", "https://example.com/mcp")
    kept = json.loads(start.env["FDSTORE_GATEWAY_ENTRY"])
    assert (kept["url"], kept["headers"]) == (url, {"Authorization": "Bearer t"})


def test_what_cannot_be_served_is_told() -> None:
    starts, left = read(
        {
            "fd": {"command": "fdstore", "args": ["mcp"]},
            "old": {"type": "sse", "url": "https://example.com"},
            "off": {"command": "x", "disabled": True},
            "signed": {"url": "https://example.com", "oauth": {}},
            "unset": {"command": "${NO_SUCH}"},
            "odd": 3,
        }
    )

    assert starts == []
    assert [each.partition(": ")[2] for each in left] == [
        "it is fdstore itself",
        "the gateway does not speak its transport, sse",
        "it is disabled",
        "the host signs in to it (oauth)",
        "it needs the variable NO_SUCH, which is not set",
        "it is not an object",
    ]


def test_a_server_that_is_behind_a_gateway_is_started_without_it() -> None:
    text = json.dumps({"servers": {"git": {"command": "git-mcp", "args": ["x"]}}})
    wrapped, _ = wrap_config(text, LAUNCHER)

    [start], _ = read_servers(wrapped, LAUNCHER, {})

    assert start.command == ("git-mcp", "x")


@pytest.mark.parametrize("text", ["", "[]", '{"other": {}}', '{"mcpServers": []}'])
def test_what_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        read_servers(text, LAUNCHER, {})


@given(st.lists(st.text(max_size=6), max_size=8))
def test_each_server_has_a_name_of_its_own_that_ends_where_that_of_a_tool_begins(given: list[str]) -> None:
    taken: set[str] = set()
    names = [server_name(each, taken) for each in given]

    assert len(set(names)) == len(given)
    for name in names:
        assert name.isidentifier()
        assert name.isascii()
        assert "__" not in name
        assert not name.endswith("_")

"""The gateway in a host's configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.config_entries import ENTRY_VARIABLE, whole_url
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.wrap import unwrap_config, wrap_config

words = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=9).filter(
    lambda word: "fdstore" not in word  # which is left as it is
)
strings = st.dictionaries(words, words, max_size=2)
others = st.fixed_dictionaries({}, optional={"cwd": words, "disabled": st.booleans()})
commands = st.fixed_dictionaries(
    {"command": words}, optional={"args": st.lists(words, min_size=1, max_size=4), "env": strings}
)
urls = st.fixed_dictionaries(
    {"url": st.just("https://example.com/mcp?k=1")},
    optional={"type": st.sampled_from(["http", "streamable-http"]), "headers": strings},
)
entries = st.tuples(commands | urls, others).map(lambda pair: {**pair[0], **pair[1]})


def wrap(entry: Any) -> Any:
    changed, [change] = wrap_config(json.dumps({"mcpServers": {"it": entry}}), ["fdstore"])
    return json.loads(changed)["mcpServers"]["it"], change


@given(
    st.dictionaries(words, entries, max_size=3),
    st.sampled_from(["mcpServers", "servers"]),
    st.sampled_from([None, 2, "\t"]),
)
def test_unwrapping_restores_each_byte(servers: dict[str, Any], section: str, indent: str | int) -> None:
    config = json.dumps({"inputs": [1.5], section: servers, "other": {}}, indent=indent)

    wrapped, _ = wrap_config(config, ["/bin/fdstore"], GatewayOptions(process="p"))
    again, changes = wrap_config(wrapped, ["fdstore"])
    unwrapped, _ = unwrap_config(again)

    assert again == wrapped
    assert {change.action for change in changes} <= {"left"}
    assert unwrapped == config
    for name, entry in servers.items():
        assert json.loads(wrapped)[section][name] != entry


COMMENTED = """\ufeff{
  // servers of the team
  "mcpServers" : {
    "git": {"command":"git\\u002dmcp", /* the fork */ "args": [ "--", "//no comment", ], "n": 1.50},
    "bare": { "command": "bare" },   "none": { "command": "x", "args": [] },
    "docs": {
      "url": "https://e.com/mcp", // public
      "headers": {"A": "b"},
    },
  },
}
""".replace("\n", "\r\n")


def test_comments_and_the_format_of_a_file_are_kept() -> None:
    wrapped, changes = wrap_config(COMMENTED, ["/py", "-P", "-m", "fdstore"])

    assert [change.action for change in changes] == ["wrapped"] * 4
    before, after = COMMENTED.split("\r\n"), wrapped.split("\r\n")
    assert after[:3] == before[:3]
    assert after[3] == (
        '    "git": {"command":"/py", /* the fork */ "args": ["-P", "-m", "fdstore", "gateway", "--", '
        '"git\\u002dmcp",  "--", "//no comment", ], "n": 1.50},'
    )
    assert after[-4:] == before[-4:]
    assert unwrap_config(wrapped)[0] == COMMENTED


def test_a_field_that_is_added_to_a_wrapped_entry_stays() -> None:
    wrapped, _ = wrap_config('{"servers": {"e": {"url": "https://e.com/mcp"}}}', ["fdstore"])
    config = json.loads(wrapped)
    config["servers"]["e"]["disabled"] = True

    unwrapped, _ = unwrap_config(json.dumps(config, indent=2))

    assert json.loads(unwrapped) == {"servers": {"e": {"url": "https://e.com/mcp", "disabled": True}}}


def offered(text: str) -> list[bool]:
    """Return for each server whether its gateway offers our tools."""
    servers = json.loads(text)["mcpServers"].values()
    return ["none" not in server["args"] for server in servers]


def test_one_of_several_servers_offers_the_tools_that_read() -> None:
    off = {"command": "off", "disabled": True}
    config = {"mcpServers": {"off": off, "a": {"command": "a"}, "b": {"url": "https://e.com/mcp"}}}

    wrapped, _ = wrap_config(json.dumps(config), ["fdstore"], GatewayOptions(tools="all"))

    assert offered(wrapped) == [True, True, False]
    assert json.loads(wrapped)["mcpServers"]["a"]["args"] == ["gateway", "--tools", "all", "--", "a"]
    more = json.loads(wrapped)
    more["mcpServers"]["late"] = {"command": "late"}
    again, _ = wrap_config(json.dumps(more), ["fdstore"])
    assert offered(again) == [True, True, False, False]
    other, _ = wrap_config(json.dumps(more), ["fdstore"], GatewayOptions(process="other"))
    assert offered(other) == [True, True, False, True]


def test_a_command_becomes_arguments_of_the_gateway() -> None:
    entry = {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "cwd": "/d"}

    wrapped, change = wrap(entry)

    assert wrapped == {**entry, "command": "fdstore", "args": ["gateway", "--", "npx", "-y", "x"]}
    assert (change.action, change.detail) == ("wrapped", "npx")


def test_headers_move_to_the_environment_and_not_to_the_command_line() -> None:
    entry = {"type": "http", "url": "https://e.com/mcp", "headers": {"Authorization": "Bearer s"}}

    wrapped, _ = wrap(entry)

    env = wrapped.pop("env")
    assert wrapped == {
        "type": "stdio",
        "command": "fdstore",
        "args": ["gateway", "--http", "https://e.com/mcp"],
    }
    assert json.loads(env[ENTRY_VARIABLE]) == entry


def test_a_password_and_a_query_of_a_url_are_not_in_the_command_line() -> None:
    url = "https://ann:secret@e.com/mcp?key=secret"

    wrapped, change = wrap({"url": url})

    assert wrapped["args"][-2:] == ["--http", "https://e.com/mcp"]
    assert "secret" not in change.detail
    assert whole_url("https://e.com/mcp", json.loads(wrapped["env"]["FDSTORE_GATEWAY_ENTRY"])) == url
    unwrapped, _ = unwrap_config(json.dumps({"servers": {"e": wrapped}}))
    assert json.loads(unwrapped) == {"servers": {"e": {"url": url}}}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"url": "https://e.com/mcp", "env": None}, "its env is not an object"),
        ({"command": "/usr/bin/fdstore", "args": ["mcp"]}, "fdstore itself"),
        ({"command": "/opt/python", "args": ["-P", "-m", "fdstore", "mcp"]}, "fdstore itself"),
        ({"command": "python", "args": ["-m", "fdstore", "gateway", "--", "x"]}, "already"),
        ({"type": "sse", "url": "https://e.com/sse"}, "transport, sse"),
        ({"url": "https://e.com/mcp", "oauth": {}}, "signs in"),
        ({"name": "odd"}, "neither a command nor a URL"),
        ("odd", "not an object"),
    ],
)
def test_what_cannot_be_wrapped_is_left_and_named(entry: Any, reason: str) -> None:
    wrapped, change = wrap(entry)

    assert wrapped == entry
    assert change.action == "left"
    assert reason in change.detail


@pytest.mark.parametrize("config", ["{}", "[]", '{"mcpServers": []}', "null"])
def test_a_file_without_servers_is_refused(config: str) -> None:
    with pytest.raises(InvalidArgument, match="mcpServers"):
        wrap_config(config, ["fdstore"])

"""One gateway for all servers of a configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.server_config import read_servers
from fdstore.hosts.gateway.wrap import wrap_config
from fdstore.hosts.gateway.wrap_code import unwrap_for_code, wrap_for_code

LAUNCHER, OPTIONS = ["/bin/fdstore"], GatewayOptions(code="only")

words = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=9).filter(
    lambda word: "fdstore" not in word
)
served = st.fixed_dictionaries({"command": words}, optional={"args": st.lists(words, max_size=3)})
left = st.just({"type": "sse", "url": "https://example.com"}) | served.map(lambda e: {**e, "disabled": True})

COMMENTED = """\ufeff{
  // servers of the team
  "mcpServers" : {
    "old": {"type": "sse", "url": "u"}, // stays
    "git": {"command":"git\\u002dmcp", /* the fork */ "args": [ "--", "//no comment", ], "n": 1.50},
    "off": { "command": "x", "disabled": true }, /* stays, too */
    "docs": {
      "url": "https://example.com/mcp"
    },
  }, "inputs": [1.0]
}
"""


def names(text: str) -> list[str]:
    return list(json.loads(text)["mcpServers"])


@given(st.dictionaries(words, served | left, max_size=4), served, st.sampled_from([None, 2, "\t"]))
def test_unwrapping_restores_each_byte(servers: dict[str, Any], one: Any, indent: str | int) -> None:
    config = json.dumps({"inputs": [1.5], "mcpServers": {**servers, "git": one}, "x": {}}, indent=indent)

    wrapped, changes = wrap_for_code(config, LAUNCHER, OPTIONS)

    stay = [change.server for change in changes if change.action == "left"]
    assert sorted(names(wrapped)) == sorted([*stay, "fdstore"])
    assert unwrap_for_code(wrapped)[0] == config


def test_comments_and_what_stays_keep_their_bytes() -> None:
    wrapped, changes = wrap_for_code(COMMENTED, LAUNCHER, OPTIONS)

    assert [(change.server, change.action) for change in changes] == [
        ("old", "left"),
        ("git", "wrapped"),
        ("off", "left"),
        ("docs", "wrapped"),
    ]
    assert (
        '"old": {"type": "sse", "url": "u"}, // stays\n    "fdstore": {"command": "/bin/fdstore"' in wrapped
    )
    assert '"off": { "command": "x", "disabled": true },' in wrapped
    assert unwrap_for_code(wrapped)[0] == COMMENTED


def test_the_gateway_finds_its_servers_again() -> None:
    wrapped, _ = wrap_for_code(
        '{"servers": {"git": {"command": "g"}, "hub": {"command": "h"}}}', LAUNCHER, GatewayOptions()
    )
    entry = json.loads(wrapped)["servers"]["fdstore"]

    kept = entry["env"]["FDSTORE_GATEWAY_SERVERS"]

    starts, _ = read_servers(f'{{"servers": {kept}}}', LAUNCHER, {})
    assert [start.command for start in starts] == [("g",), ("h",)]
    assert entry["args"] == ["gateway"]


def test_servers_that_were_added_since_then_stay() -> None:
    wrapped, _ = wrap_for_code('{"mcpServers": {"git": {"command": "g"}}}', LAUNCHER, OPTIONS)
    config = json.loads(wrapped)
    config["mcpServers"]["new"] = {"command": "n"}

    unwrapped, _ = unwrap_for_code(json.dumps(config))

    assert json.loads(unwrapped)["mcpServers"] == {"git": {"command": "g"}, "new": {"command": "n"}}


def test_a_gateway_before_each_server_goes_first() -> None:
    text = '{"mcpServers": {"git": {"command": "g"}}}'
    wrapped, _ = wrap_for_code(wrap_config(text, LAUNCHER)[0], LAUNCHER, OPTIONS)

    assert unwrap_for_code(wrapped)[0] == text


def test_what_has_no_such_gateway_is_left_as_it_is() -> None:
    text = wrap_config('{"mcpServers": {"git": {"command": "g"}}}', LAUNCHER)[0]

    assert unwrap_for_code(text) == (text, [])


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ({}, "no server that a gateway can serve"),
        ({"off": {"command": "x", "disabled": True}}, "no server that a gateway can serve"),
        ({"git": {"command": "g"}, "fdstore": {"command": "fdstore", "args": ["mcp"]}}, "another name"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(servers: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        wrap_for_code(json.dumps({"mcpServers": servers}), LAUNCHER, OPTIONS)


def test_a_second_time_is_refused() -> None:
    wrapped, _ = wrap_for_code('{"mcpServers": {"git": {"command": "g"}}}', LAUNCHER, OPTIONS)

    with pytest.raises(InvalidArgument, match="--unwrap comes first"):
        wrap_for_code(wrapped, LAUNCHER, OPTIONS)


@pytest.mark.parametrize("kept", ["no JSON", "[]"])
def test_a_damaged_copy_of_the_servers_is_refused(kept: str) -> None:
    entry = {"command": "fdstore", "env": {"FDSTORE_GATEWAY_SERVERS": kept}}

    with pytest.raises(InvalidArgument, match="FDSTORE_GATEWAY_SERVERS"):
        unwrap_for_code(json.dumps({"mcpServers": {"fdstore": entry}}))

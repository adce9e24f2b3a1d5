"""The page on MCP names verbs, options, tools and resources that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from fdstore.cli import VERBS, load_verb
from fdstore.hosts.mcp.access import PERMISSIONS, tools_of
from fdstore.store.addresses import parse_uri

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "mcp.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"\bfdstore (?!\[)[a-z][^|<`\n]*", "".join(BLOCKS))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_is_valid(command: str) -> None:
    _, name, *words = shlex.split(command)
    verb = load_verb(name)

    verb.make_context(name, words, obj=None, resilient_parsing=False)

    assert any(name in section for section in VERBS.values())


def test_the_page_names_every_option_tool_and_a_valid_uri() -> None:
    options = [
        option for each in load_verb("mcp").params if isinstance(each, click.Option) for option in each.opts
    ]
    common = {"--url-file", "--prefix", "--json"}

    assert [option for option in options if option not in PAGE and option not in common] == []
    assert [tool for tool in tools_of(PERMISSIONS) if f"`{tool}`" not in PAGE] == []
    assert len([parse_uri(uri) for uri in re.findall(r"`(fdstore://[^`]+)`", PAGE)]) == 5

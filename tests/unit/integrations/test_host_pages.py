"""The pages on coding hosts name commands, options and sizes that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fdstore.cli import load_verb
from fdstore.hosts.hooks.install.launch import Launch
from fdstore.hosts.hooks.install.toml_config import with_hook

DOCS = Path(__file__).parents[3] / "docs" / "how-to"
PAGES = {name: (DOCS / f"{name}.md").read_text("utf-8") for name in ("claude-code", "codex", "gemini-cli")}


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_a_page_is_valid(name: str) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGES[name], re.MULTILINE | re.DOTALL)
    commands = re.findall(r"\bfdstore [a-z][^|<`)\n\"]*", "".join(blocks))
    inline = re.findall(r"`(fdstore (?:hook|saved|put)[^`]*)`", PAGES[name])

    assert len(commands) >= 2
    for command in commands + inline:
        _, verb, *words = shlex.split(command)
        load_verb(verb).make_context(verb, words)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_three_commands_and_the_size_from_which_outputs_are_stored(name: str) -> None:
    first = re.search(r"^```sh\n(.*?)^```$", PAGES[name], re.MULTILINE | re.DOTALL)

    assert first
    assert len(first[1].splitlines()) == 3
    assert re.search(r"<!-- direct_chars -->\d+<!-- / --> characters", PAGES[name])


def test_the_page_on_codex_shows_what_is_written() -> None:
    launch = Launch(
        python="/opt/fdstore/bin/python",
        environment={"FDSTORE_DATA_DIR": "/home/ann/.local/share/fdstore"},
    )

    written = with_hook("", launch)

    assert "".join(f"+{line}\n" for line in written.splitlines()) in PAGES["codex"]

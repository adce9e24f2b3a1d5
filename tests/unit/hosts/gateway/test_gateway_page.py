"""Everything that docs/how-to/gateway.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

from fdstore.cli import VERBS, load_verb
from fdstore.setup.settings import VARIABLES
from fdstore.tools.catalogue import READING_TOOLS

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "how-to" / "gateway.md").read_text("utf-8")
COMMANDS = re.findall(r"^fdstore (\S+)(.*)$", PAGE, re.MULTILINE)


def test_every_command_and_option_on_the_page_exists() -> None:
    verbs = {name for section in VERBS.values() for name in section}
    known = {option for parameter in load_verb("gateway").params for option in parameter.opts}

    assert len(COMMANDS) >= 5
    for verb, rest in COMMANDS:
        assert verb in verbs
        assert set(re.findall(r"(?<= )--[a-z-]+", rest.partition(" -- ")[0])) <= known
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= known


def test_every_tool_and_variable_on_the_page_exists() -> None:
    assert all(f"`{tool}`" in PAGE for tool in READING_TOOLS)
    known = {variable.name for variables in VARIABLES.values() for variable in variables.values()}
    assert set(re.findall(r"FDSTORE_\w+", PAGE)) <= known


def test_every_module_of_the_gateway_is_listed() -> None:
    folder = ROOT / "fdstore" / "hosts" / "gateway"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}

    listed = re.findall(r"^    (\w+)  ", (folder / "__init__.py").read_text("utf-8"), re.MULTILINE)

    assert set(listed) == modules

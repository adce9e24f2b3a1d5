"""Makes what lists the names of the built-in tools: `make generate`.

    python .ci/generate_tool_names.py            writes it
    python .ci/generate_tool_names.py --check    exits with 1 if it is stale, and names it

A type checker cannot list a package, so `fdstore/tools/tool_names.py` spells out for it the names that users
write in `enabled`. A hook starts with each call of a host's tool, and has no time to load the tools: it reads
their names there. Claude Code reads the names of the reading tools in the plugin's `hooks.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from generated_files import ROOT, update

from fdstore.tools.catalogue import BUILT_IN, READING_TOOLS

MODULE = "fdstore/tools/tool_names.py"
HOOKS = "fdstore/hosts/hooks/claude_plugin/hooks/hooks.json"

TEXT = '''
"""The names of the built-in tools: for type checkers, and for hooks, which have no time to load the tools.

Generated from the tools by `make generate`: change fdstore/tools/built_in/.
"""

from __future__ import annotations

from typing import Literal

ToolName = Literal[
{own_loop}]
"""The built-in tools for a user's own loop."""

BUILT_IN_NAMES: tuple[str, ...] = (
{all})
"""All built-in tools, also those of agents alone."""

READING_NAMES: tuple[ToolName, ...] = (
{reading})
"""`READING_TOOLS` of the catalogue."""
'''


def module() -> str:
    """Return the text of the module."""
    own_loop = [tool.name for tool in BUILT_IN.values() if not tool.agents_only]
    return TEXT.lstrip().format(
        own_loop=_rows(own_loop), all=_rows([*BUILT_IN]), reading=_rows(READING_TOOLS)
    )


def _rows(names: Sequence[str]) -> str:
    return "".join(f'    "{name}",\n' for name in names)


def hooks() -> str:
    """Return the plugin's hooks. The matcher of the hook before a call ends with the names in parentheses."""
    found = json.loads((ROOT / HOOKS).read_text("utf-8"))
    [before] = found["hooks"]["PreToolUse"]
    server = before["matcher"].partition("(")[0]
    before["matcher"] = f"{server}({'|'.join(READING_TOOLS)})"
    return json.dumps(found, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(update([(MODULE, module()), (HOOKS, hooks())], check="--check" in sys.argv[1:]))

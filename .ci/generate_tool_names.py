"""Makes `fdstore/tools/tool_names.py` of the built-in tools: `make generate`.

    python .ci/generate_tool_names.py            writes it
    python .ci/generate_tool_names.py --check    exits with 1 if it is stale, and names it

A type checker cannot list a package, so the names that users write in `enabled` are spelled out for it.
"""

from __future__ import annotations

import sys

from generated_files import update

from fdstore.tools.catalogue import BUILT_IN

MODULE = "fdstore/tools/tool_names.py"

HEADER = '''"""The names of the built-in tools, for type checkers.

Generated from the tools by `make generate`: change fdstore/tools/built_in/.
"""

from __future__ import annotations

from typing import Literal

ToolName = Literal[
'''

FOOTER = ''']
"""The built-in tools for a user's own loop."""
'''


def module() -> str:
    """Return the text of the module."""
    names = [tool.name for tool in BUILT_IN.values() if not tool.agents_only]
    return HEADER + "".join(f'    "{name}",\n' for name in names) + FOOTER


if __name__ == "__main__":
    sys.exit(update([(MODULE, module())], check="--check" in sys.argv[1:]))

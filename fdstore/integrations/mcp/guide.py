"""The instructions of the server: what its ids mean and what its tools are for, in a few lines.

Hosts put them into the system prompt, and Claude Code cuts them at 2048 characters.
"""

from __future__ import annotations

from fdstore.tools.instructions import uses
from fdstore.tools.toolbox import Toolbox


def server_instructions(toolbox: Toolbox) -> str:
    """Return the instructions for the tools of a toolbox."""
    size = toolbox.context.config.default_page_size
    return (
        "fdstore keeps large texts, such as logs, files and outputs of tools, outside the conversation. Each "
        "has an id: fd:1, fd:2, ..., or name:KEY. An <fd_result> shows such an id with the first page, or "
        f"what kind of text it is, and its end. Pages have at most {size} characters and end at line ends "
        "where possible; pages, lines and characters count from 1. In what you read, "
        '"<" of tags like these is shown as "&lt;" where the element says escaped="true".\n'
        f"{uses(toolbox.context, toolbox.built_in)}"
    )

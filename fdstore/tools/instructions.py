"""The section of the system prompt about descriptors, for the enabled tools and options only.

What concerns a single tool is in its file (`Tool.explain`), what concerns all of them is here. The tests
extract the examples and call them. A sentence belongs here if it keeps a model from a mistake that the tools'
schemas do not prevent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from fdstore.results.context import Context
from fdstore.tools.tool import Tool


def instructions(context: Context, tools: Sequence[Tool], python: Sequence[str]) -> str:
    """Return the section for these tools and for the user's own tools (`python`, by name); "" if there is
    nothing to explain."""
    parts: list[str] = []
    if context.fds_on:
        parts += [_descriptors(context), uses(context, tools)]
        if context.config.enable_references:
            parts.append(_references(context))
        if python:
            parts.append(_arguments(python))
    in_paragraphs = [tool for tool in tools if tool.has_paragraph]
    for _, of_section in groupby(in_paragraphs, lambda tool: tool.section or tool.name):
        parts.append(" ".join(tool.explain(context) for tool in of_section))
    return "\n\n".join(part for part in parts if part)


def _descriptors(context: Context) -> str:
    config = context.config
    limit = f"{config.direct_chars} characters"
    if config.max_direct_output_tokens is not None:
        limit = f"about {config.max_direct_output_tokens} tokens"
    if context.policies:
        limit += " (of some tools another length)"
    whole = ""
    if config.whole_limit:
        whole = f" One of at most {config.whole_limit} characters is shown whole."
    parts = [
        "# Large texts\n"
        f"A tool result longer than {limit} is stored, and you see an "
        "<fd_result>: its id (fd:1, fd:2, ...), its first page and its end, or a preview that says what kind "
        f"of text it is and what part of it was looked at.{whole} Pages have at most "
        f"{config.default_page_size} characters and end at line ends where possible. Pages, lines and "
        "characters count from 1."
    ]
    if config.page_user_input:
        parts.append(f"Input from the user longer than {config.max_input_chars} characters is shown so too.")
    if config.json_pretty_print:
        parts.append("A stored JSON result is indented, one value a line.")
    parts.append(
        'Where a text holds tags like these, their "<" is shown as "&lt;" and the element (an <fd_inline> '
        'for a text that is not stored) says escaped="true"; what is stored is exact.'
    )
    return " ".join(parts)


def uses(context: Context, tools: Sequence[Tool]) -> str:
    """Return what these tools on descriptors are for, a line and an example each."""
    in_lines = [tool for tool in tools if not tool.has_paragraph]
    lines = [line for tool in in_lines if (line := tool.explain(context))]
    if "read_fd" in context.enabled:
        lines.append("Read what you need; do not read everything when a part will do.")
    return "\n".join(lines)


def _references(context: Context) -> str:
    use = ""
    if "fd_to_file" in context.enabled:
        use = ', e.g. fd_to_file(fd="ref:summary", file_path="summary.txt")'
    elif "read_fd" in context.enabled:
        use = ', e.g. read_fd(fd="ref:summary")'
    return (
        "# Naming a passage of your answer\n"
        'Put <ref id="summary"> before and </ref> after a passage, in any turn, and it is stored as '
        f"ref:summary; the id works wherever fd:1 does{use}. Use the id instead of repeating the text. "
        "Names have letters, digits, _ . and -; the last passage of a name counts."
    )


def _arguments(python: Sequence[str]) -> str:
    names = ", ".join(python)
    return (
        "# Passing a stored text on\n"
        f"In the arguments of {names}, {{{{fd:1}}}} or a part such as {{{{fd:1#L120-139}}}} is replaced by "
        "the stored text before the call. Write that instead of repeating the text."
    )

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
    inputs = ""
    if config.page_user_input:
        inputs = f", or user input over {config.max_input_chars},"
        if config.max_direct_output_tokens is not None or context.policies:
            inputs = f", or user input over {config.max_input_chars} characters,"
    parts = [
        "# Large texts\n"
        f"A tool result over {limit}{inputs} is stored. You see an <fd_result> with its id (fd:1), its first "
        "page or a preview of its kind, and its last lines."
    ]
    if config.whole_limit:
        parts.append(f"One of at most {config.whole_limit} characters is shown whole.")
    parts.append(f"Pages have up to {config.default_page_size} characters.")
    if config.json_pretty_print:
        parts.append("A stored JSON result is indented, one value a line.")
    parts.append('In an element that says escaped="true", "&lt;" before a tag like these stands for "<".')
    return " ".join(parts)


def uses(context: Context, tools: Sequence[Tool]) -> str:
    """Return what these tools on descriptors are for, a line and an example each."""
    in_lines = [tool for tool in tools if not tool.has_paragraph]
    lines = [line for tool in in_lines if (line := tool.explain(context))]
    if "read_fd" in context.enabled:
        lines.append("Read only what you need.")
    return "\n".join(lines)


def _references(context: Context) -> str:
    use = ""
    if "fd_to_file" in context.enabled:
        use = ', as in fd_to_file(fd="ref:plan", file_path="plan.txt")'
    return (
        "# Naming a passage of your answer\n"
        'Put <ref id="plan"> before and </ref> after a passage to store it as ref:plan, '
        f"which works wherever fd:1 does{use}. Use it instead of repeating the text."
    )


def _arguments(python: Sequence[str]) -> str:
    names = ", ".join(python)
    return (
        "# Passing a stored text on\n"
        f"In the arguments of {names}, {{{{fd:1}}}} or a part such as {{{{fd:1#L120-139}}}} is replaced by "
        "the stored text before the call. Write that instead of repeating the text."
    )

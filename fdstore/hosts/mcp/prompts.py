"""The prompt `study`, which people choose in their host, as a command or from a menu; and the completion of
ids and names that the caller's process holds, for the prompt and for URIs.
"""

from __future__ import annotations

import mcp_types as types

from fdstore.errors import InvalidArgument, quoted
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.store.addresses import TEMPLATE
from fdstore.store.contents import descriptors
from fdstore.text.layout import show_controls
from fdstore.text.selection import fd_id

STUDY = types.Prompt(
    name="study",
    title="Study a stored text",
    description="Have a stored text searched and read where it matters.",
    arguments=[
        types.PromptArgument(name="fd", description="Its id, such as fd:1 or name:plan.md", required=True),
        types.PromptArgument(name="question", description="What you want to know of it"),
    ],
)

MAX_QUESTION_CHARS = 4000

MAX_VALUES = 100
"""The most values of one answer, by the specification."""

LOOKED_AT = 1000
"""Descriptors of which those that match are offered."""


def list_prompts() -> types.ListPromptsResult:
    """Return all prompts."""
    return types.ListPromptsResult(prompts=[STUDY])


def get_prompt(name: str, arguments: dict[str, str]) -> types.GetPromptResult:
    """Return the message of a prompt. Raises `InvalidArgument`."""
    if name != STUDY.name:
        raise InvalidArgument("name", f"unknown prompt {quoted(name)}; the prompt is {STUDY.name}")
    fd = show_controls(fd_id(arguments.get("fd", "")), keep="")
    question = arguments.get("question", "").strip()
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidArgument("question", f"must have at most {MAX_QUESTION_CHARS} characters")
    text = (
        f"Study the stored text {fd}. {question or 'Tell me what it is and what matters in it.'}\n\n"
        "Search it with search_fd and read the parts that matter with read_fd instead of reading all of it. "
        "Name the lines that your answer relies on."
    )
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=STUDY.description, messages=[message])


async def complete(
    toolsets: Toolsets, access: Access, params: types.CompleteRequestParams
) -> types.CompleteResult:
    """Return the values that begin with what was typed; none for arguments that have no known values."""
    typed, found = params.argument.value, list[str]()
    if "read" in access.permissions and _is_ours(params.ref):
        if params.argument.name == "process":
            found = [access.process]
        elif params.argument.name == "fd":
            process = (await toolsets.toolset(access)).process
            held = await process.store.run(descriptors.listing(process.handle, count=LOOKED_AT))
            found = [each.fd for each in held.descriptors]
    values = [each for each in found if each.startswith(typed)]
    completion = types.Completion(
        values=values[:MAX_VALUES], total=len(values), has_more=len(values) > MAX_VALUES
    )
    return types.CompleteResult(completion=completion)


def _is_ours(ref: types.ResourceTemplateReference | types.PromptReference) -> bool:
    return ref.name == STUDY.name if isinstance(ref, types.PromptReference) else ref.uri == TEMPLATE

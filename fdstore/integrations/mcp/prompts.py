"""The prompt `study`, which people choose in their host, as a command or from a menu."""

from __future__ import annotations

import mcp_types as types

from fdstore.errors import InvalidArgument, quoted
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

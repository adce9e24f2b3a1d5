"""The part of the system prompt about descriptors: just the tools and switches that are on.

It is code: the tests run its examples. A sentence belongs here when it keeps a model from a mistake
that its tools' schemas do not prevent.
"""

from __future__ import annotations

from fdstore.tools.tool import Context


def instructions(context: Context, offered: frozenset[str]) -> str:
    """The section for this context and these built-in tools; empty when there is nothing to say."""
    parts = [
        *(_descriptors(context, offered) if context.fds_on else []),
        *(_references(context, offered) if context.fds_on and context.config.enable_references else []),
        *(_spawning(context, offered) if "spawn" in offered else []),
    ]
    return "\n\n".join(parts)


def _descriptors(context: Context, offered: frozenset[str]) -> list[str]:
    config = context.config
    page_size, limit = config.default_page_size, config.max_direct_output_chars
    said = [
        "# Large texts\n"
        f"A tool result longer than {limit} characters is stored, and you see an <fd_result>: its id (fd:1, "
        f"fd:2, ...), its first page and its end. Pages have at most {page_size} characters and end at line "
        "ends where possible. Positions count from 1.",
    ]
    if config.page_user_input:
        said[0] += f" Input from the user longer than {config.max_input_chars} characters is shown so too."
    uses = []
    if "read_fd" in offered:
        uses += [
            '- the next page: read_fd(fd="fd:1", start=2)',
            '- lines 120 to 139: read_fd(fd="fd:1", mode="line", start=120, count=20), '
            'or read_fd(fd="fd:1#L120-139")',
            "- keep a part for later, or to hand it on, without reading it: "
            'read_fd(fd="fd:1#L120-139", extract_to_new_fd=true)',
        ]
    if "search_fd" in offered:
        uses.append('- find lines, as grep -n: search_fd(fd="fd:1", pattern="ERROR", context=2)')
    if "list_fds" in offered:
        uses.append("- what is stored: list_fds()")
    if "fd_to_file" in offered:
        uses.append('- save it exactly as it is: fd_to_file(fd="fd:1", file_path="out.txt")')
    if "write_fd" in offered:
        uses.append('- store a text of your own: write_fd(data="...")')
    if "close_fd" in offered:
        uses.append('- drop what you no longer need: close_fd(fd="fd:1")')
    if uses:
        said.append("\n".join(uses))
    if "read_fd" in offered:
        said.append("Read what you need; do not read everything when a part will do.")
    return said


def _references(context: Context, offered: frozenset[str]) -> list[str]:
    use = ""
    if "fd_to_file" in offered:
        use = ', e.g. fd_to_file(fd="ref:summary", file_path="summary.txt")'
    elif "read_fd" in offered:
        use = ', e.g. read_fd(fd="ref:summary")'
    return [
        "# Naming a passage of your answer\n"
        'Put <ref id="summary"> before and </ref> after a passage, in any turn, and it is stored as '
        f"ref:summary; the id works wherever a descriptor does{use}. Do not repeat the text to pass it on. "
        "Ids have letters, digits, _ . and -."
    ]


def _spawning(context: Context, offered: frozenset[str]) -> list[str]:
    names = ", ".join(context.linked)
    share = ""
    if context.fds_on:
        share = (
            ' Hand texts on by id: additional_preload_fds=["fd:1", "fd:2#L1-80"]; the child reads them '
            "under the same ids, so do not paste them into the query."
        )
    return [
        "# Other agents\n"
        f"spawn starts one of these programs: {names}. The child knows only your query and what you "
        f"preload, and its last message is your result. Spawn several in one turn to run them at once.{share}"
    ]

"""The section of the system prompt about descriptors, for the enabled tools and options only.

The tests extract its examples and call them. A sentence belongs here if it keeps a model from a mistake that
the tools' schemas do not prevent.
"""

from __future__ import annotations

from msgspec import UnsetType

from fdstore.results.context import Context


def instructions(context: Context, python: tuple[str, ...] = ()) -> str:
    """Return the section for the enabled tools of a context and for the user's own tools (`python`, by name);
    "" if there is nothing to explain."""
    parts: list[str] = []
    if context.fds_on:
        parts += [_descriptors(context), uses(context)]
        if context.config.enable_references:
            parts.append(_references(context))
        if python:
            parts.append(_arguments(python))
    if "spawn" in context.enabled:
        parts.append(_spawning(context))
    if "fork" in context.enabled:
        parts.append(_forking())
    if "pipe" in context.enabled:
        parts.append(_pipelines(context))
    elif context.enabled & {"wait", "kill"}:
        parts.append(_waiting(context))
    return "\n\n".join(part for part in parts if part)


def _descriptors(context: Context) -> str:
    config = context.config
    limit = f"{config.direct_chars} characters"
    if not isinstance(config.max_direct_output_tokens, UnsetType):
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


def uses(context: Context) -> str:
    """Return what the enabled tools on descriptors are for, a line and an example each."""
    on = context.enabled
    lines = []
    if "read_fd" in on:
        lines += [
            '- the next page: read_fd(fd="fd:1", start=2)',
            '- lines 120 to 139: read_fd(fd="fd:1", mode="line", start=120, count=20) '
            'or read_fd(fd="fd:1#L120-139")',
            "- keep a part, to hand it on, without reading it: "
            'read_fd(fd="fd:1#L120-139", extract_to_new_fd=true)',
        ]
    if "search_fd" in on:
        lines.append('- find lines, as grep -n: search_fd(fd="fd:1", pattern="ERROR", context=2)')
    if "list_fds" in on:
        lines.append("- what is stored: list_fds()")
    if "write_fd" in on:
        lines.append('- store a text of your own: write_fd(data="...")')
        lines.append('- begin one that others read while you write it: write_fd(data="...", eof=false)')
    if "put_fd" in on:
        lines.append('- store a text that is complete: put_fd(text="...")')
        if context.preload_root is not None:
            lines.append('- store a file without reading it: put_fd(file="build.log")')
    if "fd_to_file" in on:
        lines.append('- save it exactly as it is: fd_to_file(fd="fd:1", file_path="out.txt")')
    if "close_fd" in on:
        lines.append('- drop what you no longer need: close_fd(fd="fd:1")')
    if "read_fd" in on:
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


def _arguments(python: tuple[str, ...]) -> str:
    names = ", ".join(python)
    return (
        "# Passing a stored text on\n"
        f"In the arguments of {names}, {{{{fd:1}}}} or a part such as {{{{fd:1#L120-139}}}} is replaced by "
        "the stored text before the call. Write that instead of repeating the text."
    )


def _spawning(context: Context) -> str:
    programs = ", ".join(context.linked)
    example = f'spawn(program_name="{next(iter(context.linked))}", query="..."'
    text = (
        "# Other agents\n"
        f"spawn starts one of these programs: {programs}. The new agent knows only your query and what you "
        "preload, and its last message is your result. Spawn several in one turn to run them at once."
    )
    if not context.fds_on:
        return f"{text} Example: {example})"
    text = (
        f"{text} Hand texts on by id, whole or in part, instead of repeating them; they are read under "
        f'the same ids: {example}, additional_preload_fds=["fd:1", "fd:1#L120-139"]). A part gets an id '
        "of its own."
    )
    if not context.enabled & {"read_fd", "wait"}:
        return text
    return (
        f"{text} With background=true you continue immediately with the fd of its text, which grows as it "
        f"works: {example}, background=true)."
    )


def _forking() -> str:
    return (
        "# Copies of yourself\n"
        "fork runs copies of you at once, each with this whole conversation and its own task: "
        'fork(prompts=["Check the first half.", "Check the second half."]). Their last messages are your '
        "result, in this order."
    )


def _pipelines(context: Context) -> str:
    on = context.enabled
    programs = ", ".join(context.commands)
    commands = ", ".join(f'"{each}"' for each in dict.fromkeys((context.commands[0], context.commands[-1])))
    in_fd = ', in_fd="fd:1"' if context.fds_on else ""
    parts = [
        "# Programs over stored texts\n"
        f"pipe runs programs ({programs}) in the background: pipe(commands=[{commands}]{in_fd}). There is no "
        "shell: no variables, redirections or globs. You get the process, the fd of its output, and the fd "
        "of its error output" + ("; read them now or later." if "read_fd" in on else ".")
    ]
    if context.fds_on:
        parts.append("The output of one pipeline may be the in_fd of another, also while it is written.")
    if "write_fd" in on:
        parts.append('With in_fd="new" you write its input yourself with write_fd, and end it with eof=true.')
    if on & {"wait", "kill"}:
        parts.append(_waiting(context))
    return " ".join(parts)


def _waiting(context: Context) -> str:
    parts = []
    if "wait" in context.enabled:
        parts.append(
            "wait returns when a process has ended, or when the time is over, with its state; name the "
            "process or the fd that it writes."
        )
    if "kill" in context.enabled:
        parts.append("kill ends a process and all that it started; what it has written stays.")
    return " ".join(parts)

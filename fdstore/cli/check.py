"""The verbs init and check: a program file to begin with, and what looks like a mistake in others."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import field

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.errors import TargetExists
from fdstore.model.records import Record

if TYPE_CHECKING:
    from fdstore.agents.loop.program_loader import LoadedFile
    from fdstore.errors import FDStoreError


class CheckedFile(Record, frozen=True, kw_only=True):
    """The finding of `check` about one file. `key` and `problem` say why it is not ok and are "" if it is;
    `others` maps further wrong keys to their problems, `linked` aliases to paths."""

    file: str
    ok: bool
    key: str = ""
    problem: str = ""
    others: dict[str, str] = field(default_factory=dict)
    name: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    linked: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@verb
@click.argument("file", metavar="[FILE]", default="agent.toml", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def init(session: CliSession, file: Path, force: bool) -> None:
    """Write a commented program file with every section and key. FILE is agent.toml by default; - prints it.

    The file runs as it stands; keys that are commented out show their defaults.
    """
    from fdstore.agents.loop.editor_schema import starter_file
    from fdstore.agents.loop.program_checks import NAME
    from fdstore.files.target import Target

    text = starter_file(name=None if NAME.fullmatch(file.stem) else "agent")
    if str(file) == "-":
        output.content(text.encode("utf-8"))
        return
    try:
        with Target(file, exist_ok=force) as target:
            target.write(text.encode("utf-8"))
            target.commit()
    except TargetExists as error:
        error.add_note("with --force it is replaced")
        raise
    shown = output.path_text(file)
    if session.as_json:
        output.document({"file": shown})
        return
    word = shlex.quote(shown)
    output.line(f"{shown} is written. Next:")
    output.line(f"  fdstore check {word}")
    output.line(f"  fdstore run {word}    (with ANTHROPIC_API_KEY set)")


@verb
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--imports", is_flag=True, help="Import the functions of [tools] python, too: this runs their modules."
)
@click.option("--schema", is_flag=True, help="Print the JSON schema of program files, for editors.")
@click.pass_context
def check(
    context: click.Context, session: CliSession, files: tuple[Path, ...], imports: bool, schema: bool
) -> None:
    """Check program files and all that they link to, each once.

    Prints a line for each file: what it is, or the mistakes in it with their keys; then what is allowed but
    suspicious. Prompts, preload files and directories must exist. Needs no store, network or API key.

    Functions of [tools] python are imported with --imports only, since that runs code. One that cannot be
    imported is a warning: the machine that runs the agent may have it. So is a package, a region, a project
    or a key that the provider of the model needs and that is not here, and what a provider lacks.

    The exit code is 1 if there is a mistake; warnings leave it 0.
    """
    if schema:
        if files:
            raise click.UsageError("--schema takes no FILE")
        _print_schema()
        return
    if not files:
        raise click.UsageError("name a program file, as agent.toml")
    found = check_files(files, imports=imports)
    for each in found:
        if session.as_json:
            output.document(each)
        else:
            _print_check(each)
    if not all(each.ok for each in found):
        context.exit(1)


def check_files(paths: tuple[Path, ...], *, imports: bool) -> list[CheckedFile]:
    """Check files and those linked from them; those with mistakes come last. A link that leads nowhere is a
    mistake of the file that has it."""
    from fdstore.agents.loop.program_loader import all_mistakes, load_files

    if imports:
        output.show_logs()
    refused: dict[Path, CheckedFile] = {}

    def refuse(error: FDStoreError, path: Path, linked_from: Path | None) -> None:
        checked = _mistake(error, path, linked_from)
        refused.setdefault(Path(checked.file), checked)

    loaded: dict[Path, LoadedFile] = {}
    followed: set[Path] = set()
    while paths:
        loaded |= {file.path: file for file in load_files(paths, refuse).values()}
        wrong = [path for path in refused if path not in followed]
        followed.update(wrong)
        known = {os.path.realpath(path) for path in (*loaded, *refused)}
        linked = [each for path in wrong for each in all_mistakes(path)[1]]
        paths = tuple(each for each in linked if os.path.realpath(each) not in known)
    right = [_without_mistake(file, imports) for path, file in loaded.items() if path not in refused]
    return right + list(refused.values())


def _mistake(error: FDStoreError, path: Path, linked_from: Path | None) -> CheckedFile:
    """Return an error as the file, the key and the problem; the library's text has them in one. `others` are
    the further mistakes in the file."""
    from fdstore.agents.loop.program_loader import all_mistakes
    from fdstore.errors import InvalidProgram

    if not isinstance(error, InvalidProgram):
        return CheckedFile(file=output.path_text(path), ok=False, problem="does not exist")
    for file in (linked_from, path):
        if file is not None and error.argument.startswith(f"{file}: "):
            key = error.argument.removeprefix(f"{file}: ")
            problems = all_mistakes(file)[0]
            others = {other: problem for other, problem in problems.items() if other != key}
            # of a key that names several files the error has the first
            whole = problems.get(key, error.problem)
            return CheckedFile(file=output.path_text(file), ok=False, key=key, problem=whole, others=others)
    return CheckedFile(file=output.path_text(path), ok=False, problem=error.problem)


def _without_mistake(file: LoadedFile, imports: bool) -> CheckedFile:
    from fdstore.agents.loop.models.providers import notes_on

    program = file.program
    return CheckedFile(
        file=output.path_text(file.path),
        ok=True,
        name=program.name,
        model=program.model,
        tools=program.tools,
        python=program.python,
        linked={alias: output.path_text(path) for alias, path in file.links.items()},
        warnings=file.warnings + notes_on(program) + _warnings(file, imports),
    )


def _warnings(file: LoadedFile, imports: bool) -> tuple[str, ...]:
    """Return what is wrong with the functions of a program, and with policies for tools that it lacks."""
    from fdstore.errors import InvalidArgument, quoted
    from fdstore.tools.catalogue import BUILT_IN
    from fdstore.tools.functions.python_tool import import_tool, python_tool

    warnings = []
    names = [path.partition(":")[2] for path in file.program.python]
    for number, path in enumerate(file.program.python if imports else ()):
        try:
            # a tool of the SDK may have another name than its function
            names[number] = python_tool(import_tool(path, file.program.tools_path)).name
        except InvalidArgument as error:
            warnings.append(f"[tools] python: {error.problem}")
    for name in file.program.file_descriptor.tool:
        where = f"file_descriptor.tool.{name if name.isidentifier() else quoted(name)}"
        if name in BUILT_IN:
            warnings.append(f"{where}: has no effect: {name} is a built-in tool, not one of your functions")
        elif name not in names:
            warnings.append(f"{where}: [tools] python names no function called so")
    return tuple(warnings)


def _print_check(checked: CheckedFile) -> None:
    if not checked.ok:
        where = f"{checked.file}: {checked.key}" if checked.key else checked.file
        output.marked("PROBLEM", "bad", f"{where}: {checked.problem}")
        for key, problem in checked.others.items():
            output.marked("PROBLEM", "bad", f"{checked.file}: {key}: {problem}")
        return
    tools = ", ".join((*checked.tools, *checked.python)) or "none"
    links = ", ".join(f"{alias} ({path})" for alias, path in checked.linked.items()) or "none"
    said = f"program {checked.name}; model {checked.model}; tools {tools}; links {links}"
    output.marked("ok     ", "good", f"{checked.file}: {said}")
    for warning in checked.warnings:
        output.marked("note   ", "busy", f"{checked.file}: {warning}")


def _print_schema() -> None:
    import msgspec

    from fdstore.agents.loop.editor_schema import editor_schema

    output.line(msgspec.json.format(msgspec.json.encode(editor_schema()), indent=2).decode())

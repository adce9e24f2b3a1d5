"""`fdstore init`: a program file to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.errors import TargetExists


@verb
@click.argument("file", metavar="[FILE]", default="agent.toml", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def init(session: CliSession, file: Path, force: bool) -> None:
    """Write a commented program file with every section and key. FILE is agent.toml by default; - prints it.

    The file runs as it stands; keys that are commented out show their defaults.
    """
    from fdstore.agent.editor_schema import starter_file
    from fdstore.agent.program_checks import NAME
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

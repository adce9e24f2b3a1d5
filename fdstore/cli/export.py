"""The verb export: write a content to a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.progress import progress
from fdstore.cli.session import CliSession, verb
from fdstore.errors import TargetExists, TargetMissing
from fdstore.text.quantities import format_count, format_size

if TYPE_CHECKING:
    from fdstore.client import Process


@verb
@click.argument("process", metavar="PROC")
@click.argument("selector", metavar="SELECTOR")
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--append", is_flag=True, help="Add to the file instead of replacing it.")
@click.option("--no-create", is_flag=True, help="Fail if the file does not exist.")
@click.option("--no-clobber", is_flag=True, help="Fail if the file exists.")
def export(
    session: CliSession,
    process: str,
    selector: str,
    file: str,
    append: bool,
    no_create: bool,
    no_clobber: bool,
) -> None:
    """Write a content, text or bytes, or the part that SELECTOR names, to FILE, exact to the byte.

    The write is atomic: after a failure FILE is unchanged.
    """
    if file == "-":
        raise click.UsageError("to print a content, use `fdstore cat`; for a file of that name, write ./-")
    written = 0

    def count(done: int) -> None:
        nonlocal written
        written = done
        if tell:
            tell(done)

    with session.process(process) as opened:
        label = f"export {selector}"
        with progress(label, _bytes_of(opened, selector) if output.stderr_is_terminal() else None) as tell:
            try:
                done = opened.export(
                    selector,
                    file,
                    mode="append" if append else "write",
                    create=not no_create,
                    exist_ok=not no_clobber,
                    progress=count,
                )
            except TargetExists as error:
                error.add_note("leave out --no-clobber to replace it, or use --append")
                raise
            except TargetMissing as error:
                if no_create and os.path.isdir(os.path.dirname(file) or "."):
                    error.add_note("leave out --no-create to create it")
                raise
    if session.as_json:
        output.document(
            {"fd": done.fd, "file_path": output.path_text(done.file_path), "mode": done.mode}
            | {"char_count": done.char_count, "size_bytes": done.size_bytes, "kind": done.kind}
        )
    else:
        action = "appended to" if append else "written to"
        if done.kind == "text":
            amount = format_count(done.char_count, "character")
        else:
            amount = format_count(written, "byte")
        output.line(f"{amount} {action} {file} ({format_size(done.size_bytes)})")


def _bytes_of(opened: Process, selector: str) -> int | None:
    """Return the number of bytes to write; None for a part of the content."""
    from fdstore.text.selection import selector as parse_selector

    found = parse_selector(selector)
    return opened.stat(found.fd).bytes if found.part is None else None

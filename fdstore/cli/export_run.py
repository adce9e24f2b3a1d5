"""The verb export-run: a run as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.progress import progress
from fdstore.cli.session import CliSession, verb
from fdstore.errors import TargetExists
from fdstore.setup.optional_packages import require
from fdstore.text.quantities import format_count, format_size

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.inspector.web.run_export import RunExport

BLOCK_BYTES = 1 << 20

Write = Callable[[bytes], object]
Tell = Callable[[int], None] | None


@verb
@click.argument("tree", metavar="TREE")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--redact",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Replace what this RE2 expression matches in any text by [redacted]; repeatable.",
)
@click.option("--no-clobber", is_flag=True, help="Fail if the file exists.")
def export_run(
    session: CliSession, tree: str, file: str, patterns: tuple[str, ...], no_clobber: bool
) -> None:
    """Write a run as one HTML page that needs nothing else: its timeline, each process with its conversation,
    and the beginning of what it holds.

    The page opens in any browser, offline, and loads nothing. The write is atomic: after a failure FILE is
    unchanged. With - for FILE the page goes to standard output. --redact takes patterns of single lines, as
    `fdstore search` does; (?i) before one ignores case. They apply to whole texts, also in names, arguments
    and errors, before anything is cut.

    \b
    fdstore export-run triage triage.html
    fdstore export-run triage - --redact 'sk-[A-Za-z0-9_-]+' --redact '(?i)acme' > triage.html
    """
    require(("jinja2",), "web")
    from fdstore.files.target import Target
    from fdstore.inspector.web.run_export import RunExport

    with session.store(use="look") as store:
        run = RunExport(store.prefix, tree, patterns)
        with progress(f"export {tree}", None) as tell:
            if file == "-":
                _write(store, run, _print, tell)
                return
            try:
                with Target(file, exist_ok=not no_clobber) as target:
                    _write(store, run, target.write, tell)
                    size_bytes = target.commit()
            except TargetExists as error:
                error.add_note("leave out --no-clobber to replace it")
                raise
    places = run.redactor.places
    if session.as_json:
        found = {"tree": tree, "file_path": output.path_text(file), "size_bytes": size_bytes}
        found |= {"processes": run.process_count}
        output.document(found | ({"redacted": places} if patterns else {}))
        return
    what = format_count(run.process_count, "process", "processes")
    redacted = f", {format_count(places, 'place')} redacted" if patterns else ""
    output.line(f"{what} written to {file} ({format_size(size_bytes)}{redacted})")


def _print(data: bytes) -> None:
    output.content(data, raw=True)  # the page has no control characters


def _write(store: Store, run: RunExport, write: Write, tell: Tell) -> None:
    """Write the page. Its head says how many places were redacted, so with patterns the body is first."""
    from fdstore.inspector.web.rendering import encode

    for step in run.prepare():
        store.run(step)
    if not run.redactor:
        write(encode(run.head()))
        _write_body(store, run, write, tell)
        return
    with TemporaryFile() as body:
        _write_body(store, run, body.write, tell)
        body.seek(0)
        write(encode(run.head()))
        while block := body.read(BLOCK_BYTES):
            write(block)


def _write_body(store: Store, run: RunExport, write: Write, tell: Tell) -> None:
    from fdstore.inspector.web.rendering import encode

    written = 0
    for piece in run.body():
        data = encode(store.run(piece))
        write(data)
        written += len(data)
        if tell:
            tell(written)

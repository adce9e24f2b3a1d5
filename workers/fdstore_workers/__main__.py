"""`python -P -m fdstore_workers`, which is `fdstore worker`: one worker, until TERM."""

from __future__ import annotations

import logging
import os
import sys
from typing import Literal

import click

from fdstore import settings
from fdstore.errors import FDStoreError
from fdstore.loading import frozen_imports, require
from fdstore.safe_path import drop_relative_entries
from fdstore.text.layout import show_controls
from fdstore.url_options import exit_code_of, read_url_file, warning_of


@click.command(
    name="worker",
    help="Run agents that others spawn, and pipelines, until TERM or Ctrl-C. Agents need the key of "
    "the model (ANTHROPIC_API_KEY); without it only pipelines are taken.\n\n"
    "A program is code. On the embedded store, which only you can reach, programs may do what they name. On "
    "a store by URL they may call, run, write and read only what the options below allow.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--url", help="The store (default: $FDSTORE_URL, else the embedded server).")
@click.option("--url-file", help="The same, from the first line of a file that only you can read.")
@click.option("--prefix", help="What keys begin with (default: $FDSTORE_PREFIX, else fdstore).")
@click.option("--broker-url", help="The queue (default: $FDSTORE_BROKER_URL, else the store's Redis).")
@click.option(
    *("-c", "--concurrency"),
    type=click.IntRange(1, 10_000),
    default=8,
    show_default=True,
    help="Agents at a time. A waiting agent takes no place.",
)
@click.option(
    "--pool",
    type=click.Choice(["threads", "prefork"]),
    default="threads",
    show_default=True,
    help="threads: one process; prefork: one process for each agent at a time, for tools that compute.",
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bubblewrap", "sandlock", "off"]),
    default="auto",
    show_default=True,
    help="What the commands of pipelines run in; auto: the first of them that works here. off: no commands.",
)
@click.option(
    "--unsandboxed-commands",
    is_flag=True,
    help="Run the commands of pipelines without a sandbox where none can be made.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The least of what is logged; info has a line for each process that ends here.",
)
@click.option(
    "--tools-path",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Import the Python functions that programs name from here, after installed packages; repeatable.",
)
@click.option(
    "--allow-python",
    multiple=True,
    metavar="PATTERN",
    help="Python functions that programs may call here, as 'pkg.tools:*'; repeatable.",
)
@click.option(
    "--allow-command",
    "allow_commands",
    multiple=True,
    metavar="NAME",
    help="Commands that pipelines may run here; repeatable.",
)
@click.option(
    "--export-root",
    metavar="DIR",
    help="The directory that fd_to_file writes below; the [export] root of a program lies below it.",
)
@click.option(
    "--preload-root",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="The directory that files are preloaded from; those of programs lie below it.",
)
def worker(
    url: str | None,
    url_file: str | None,
    prefix: str | None,
    broker_url: str | None,
    concurrency: int,
    pool: Literal["threads", "prefork"],
    allow_python: tuple[str, ...],
    allow_commands: tuple[str, ...],
    export_root: str | None,
    sandbox: Literal["auto", "bubblewrap", "sandlock", "off"],
    preload_root: str | None,
    unsandboxed_commands: bool,
    log_level: str,
    tools_path: tuple[str, ...],
) -> None:
    drop_relative_entries()
    require()
    # last: a file there never stands in for a package that is installed
    sys.path += map(os.path.abspath, tools_path)
    with frozen_imports():
        from fdstore.runtime.queue import find_broker
        from fdstore.wire.store_url import parse_store_url
        from fdstore_workers.main import Worker
        from fdstore_workers.tasks import worker_name

    warnings = [warning_of(*each) for each in (("--url", url or ""), ("--broker-url", broker_url or ""))]
    if url_file:
        url, warning = read_url_file(url_file)
        warnings.append(warning)
    for each in filter(None, warnings):
        click.echo(each, err=True)
    broker_url = broker_url or settings.read().broker_url
    # here, where a wrong one is a wrong option: the supervisor knows only that its child did not start
    if chosen := url or settings.read().url:
        parse_store_url(chosen)
    if chosen or broker_url:
        find_broker(chosen or "", broker_url)
    whole = Worker(
        name=worker_name(),
        url=url,
        prefix=prefix,
        broker_url=broker_url,
        concurrency=concurrency,
        pool=pool,
        allow_python=allow_python,
        allow_commands=allow_commands,
        export_root=export_root,
        engine=sandbox,
        preload_root=preload_root,
        unsandboxed_commands=unsandboxed_commands,
        log_level=log_level.upper(),
    )
    sys.exit(whole.supervise())


def main() -> None:
    """Runs the command; a typed error is one line on stderr and exit status 1, 2 if it is of the options."""
    try:
        worker(prog_name="fdstore worker", windows_expand_args=False)
    except FDStoreError as error:
        click.echo(f"fdstore: {error.type}: {show_controls(str(error), keep='')}", err=True)
        logging.shutdown()
        sys.exit(exit_code_of(error))


if __name__ == "__main__":
    main()

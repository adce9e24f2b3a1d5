"""Start `fdstore worker`: replace this process by `fdstore_workers`, the only package that imports Celery."""

from __future__ import annotations

import os
import sys

import click

from fdstore.cli.session import Session, pass_session


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@pass_session
def worker(session: Session, arguments: tuple[str, ...]) -> None:
    # not on the command line, which everybody can read
    before = {"FDSTORE_URL": session.url, "FDSTORE_PREFIX": session.prefix}
    os.environ.update({name: value for name, value in before.items() if value})
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "fdstore_workers", *arguments])

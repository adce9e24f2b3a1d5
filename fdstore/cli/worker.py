"""Start `fdstore worker`: replace this process by `fdstore_workers`, the only package that imports Celery."""

from __future__ import annotations

import os
import sys

import click

from fdstore.cli.session import CliSession, pass_session


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@pass_session
def worker(session: CliSession, arguments: tuple[str, ...]) -> None:
    from fdstore.local.worker import worker_command, worker_environment

    sys.stdout.flush()
    os.execve(sys.executable, worker_command(*arguments), worker_environment(session.url, session.prefix))

"""The verb redis-cli: run redis-cli on the store. It passes the address on, so that commands of the README
work as printed, and keeps the password off the command line."""

from __future__ import annotations

import os

import click

from fdstore.cli import output
from fdstore.cli.session import Session, common_options, pass_session
from fdstore.errors import StartFailed


@click.command(
    name="redis-cli",
    params=common_options(),
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": ["--help"],
    },
)
@click.argument("arguments", metavar="[REDIS-CLI OPTION|COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@pass_session
def redis_cli(session: Session, arguments: tuple[str, ...]) -> None:
    """Run redis-cli, or valkey-cli, on the store.

    All arguments are passed to redis-cli; without a command it is interactive. Reading is safe; changing
    stored records by hand may damage them.

    \b
    fdstore redis-cli HGETALL 'fdstore:{triage}'
    fdstore redis-cli --raw HGET 'fdstore:{triage}:triage:fd:1:pages' 1
    """
    from fdstore.local.redis_conf import find_cli
    from fdstore.wire.store_url import parse_store_url, redis_cli_options

    program = find_cli()
    if program is None:
        raise StartFailed(
            "this machine", "there is no redis-cli or valkey-cli on PATH; a system package of Redis has one"
        )
    place = parse_store_url(session.chosen_url or session.embedded_server().ensure())
    words, password = redis_cli_options(place)
    if session.as_json:  # redis-cli has an option of this name, too
        words.append("--json")
    if password:
        os.environ["REDISCLI_AUTH"] = password
    output.finish()
    os.execv(program, [str(program), *words, *arguments])

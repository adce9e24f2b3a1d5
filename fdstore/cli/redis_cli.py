"""The verbs redis-cli and redis-server: run the client on the store, and the server that fdstore finds.

redis-cli passes the address on, so that commands of the README work as printed, and keeps the password off
the command line. Where no redis-cli is installed it sends the commands itself.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, common_options, pass_session

if TYPE_CHECKING:
    from fdstore.wire.store_url import StoreUrl

JSON_VERSION = (7,)
"""The version of redis-cli from which it has --json."""

PASSES_ON = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": ["--help"],
}
"""Settings of a command whose arguments are another program's."""


@click.command(name="redis-cli", params=common_options(), context_settings=PASSES_ON)
@click.argument("arguments", metavar="[REDIS-CLI OPTION|COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@pass_session
def redis_cli(session: CliSession, arguments: tuple[str, ...]) -> None:
    """Run redis-cli, or valkey-cli, on the store.

    All arguments are passed to redis-cli; without a command it is interactive. Reading is safe; changing
    stored records by hand may damage them. Without a redis-cli on PATH, or with --json and one before 7,
    fdstore sends the commands itself, and knows the options --raw and --no-raw alone.

    \b
    fdstore redis-cli HGETALL 'fdstore:{triage}'
    fdstore redis-cli --raw HGET 'fdstore:{triage}:triage:fd:1:pages' 1
    """
    from fdstore.local.redis_conf import cli_version, find_cli
    from fdstore.wire.store_url import parse_store_url, redis_cli_options

    program = find_cli()
    store_url = parse_store_url(session.chosen_url or session.embedded_server().ensure())
    lacks = "which is not on PATH; a system package of Redis has it"
    if program is not None and session.as_json and cli_version(program) < JSON_VERSION:
        program, lacks = None, f"and --json needs redis-cli {JSON_VERSION[0]}: the one on PATH is older"
    if program is None:
        sys.exit(0 if _send(store_url, list(arguments), lacks, as_json=session.as_json) else 1)
    words, password = redis_cli_options(store_url)
    if session.as_json:  # redis-cli has an option of this name, too
        words.append("--json")
    if password:
        os.environ["REDISCLI_AUTH"] = password
    output.finish()
    os.execv(program, [str(program), *words, *arguments])


def _send(store_url: StoreUrl, words: list[str], lacks: str, *, as_json: bool) -> bool:
    """Do what redis-cli would; False if the server answered with an error. `lacks`: why redis-cli does not,
    for its own options."""
    from fdstore.cli import redis_replies
    from fdstore.wire.raw_commands import RawConnection

    raw = not output.stdout_is_terminal()
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option not in ("--raw", "--no-raw"):
            raise click.UsageError(f"{option} needs redis-cli itself, {lacks}")
        raw = option == "--raw"

    def show(reply: Any) -> None:
        if as_json:
            output.line(redis_replies.json_reply(reply))
        elif not raw:
            output.line(redis_replies.format_reply(reply))
        else:
            shown = redis_replies.raw_reply(reply) + b"\n"
            if output.stdout_is_terminal():  # where content is shown as UTF-8
                shown = shown.decode(errors="backslashreplace").encode()
                output.content(shown)
            else:
                output.escaped_content(shown)

    with RawConnection(store_url, protocol=3 if as_json else 2) as connection:
        if words or not output.stdin_is_terminal():
            commands = [words] if words else redis_replies.read_commands(sys.stdin or ())
            return redis_replies.run(connection, commands, show)
        redis_replies.prompt(connection, store_url.shown, show, output.say)
        return True


@click.command(name="redis-server", context_settings=PASSES_ON)
@click.argument("arguments", metavar="[REDIS-SERVER OPTION]...", nargs=-1, type=click.UNPROCESSED)
def redis_server(arguments: tuple[str, ...]) -> None:
    """Run a redis-server or valkey-server: the newest that is installed, as the embedded server does.

    All arguments are passed to it. FDSTORE_REDIS_SERVER names another program. This is not the embedded
    server, which commands start by themselves, and which uses none of these arguments.

    \b
    fdstore redis-server --version
    fdstore redis-server deploy/redis.conf --port 6390 --dir data
    """
    from fdstore.local.redis_conf import find_binary

    program = find_binary()
    output.finish()
    os.execv(program, [str(program), *arguments])

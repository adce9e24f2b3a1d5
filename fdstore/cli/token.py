"""The verb token: add, list and remove tokens of callers on the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.durations import DURATION
from fdstore.cli.session import CliSession, Use, verb
from fdstore.cli.tables import Column, Table, key
from fdstore.errors import InvalidArgument, NotFound
from fdstore.text.quantities import ago, moment

if TYPE_CHECKING:
    from fdstore.model.records import Unreadable
    from fdstore.store.tokens import Token

USES: dict[str, Use] = {"add": "make", "ls": "look", "rm": "remove"}
"""Action -> how it uses the store."""

TABLE = Table(
    (
        key("NAME", least=8),
        key("PROCESS"),
        Column("ALLOW"),
        Column("EXPIRES", drop=2),
        Column("USED", drop=1),
    )
)


@verb
@click.argument("action", type=click.Choice(list(USES)), metavar="add|ls|rm")
@click.argument("name", required=False)
@click.option("--process", metavar="PROC", help="With add: the process that it permits.")
@click.option("--tree", is_flag=True, help="With add: reading the other processes of its tree too.")
@click.option(
    "--allow",
    metavar="LIST",
    multiple=True,
    default=["read"],
    show_default="read",
    help="With add: what it permits, of read, write, pipe, export, python, answer; repeatable.",
)
@click.option("--expires", type=DURATION, metavar="TIME", help="With add: as 12h or 30d. [default: never]")
def token(
    session: CliSession,
    action: str,
    name: str | None,
    process: str | None,
    tree: bool,
    allow: tuple[str, ...],
    expires: float | None,
) -> None:
    """Add, list or remove tokens, by which `fdstore mcp --http` knows its callers.

    A token is shown once, when it is added; only its hash is stored. A removed token is refused from the next
    request on; one that cannot be read is removed by its hash, which `ls` tells. A server gives no token more
    than its own --allow.

    \b
    fdstore token add ada --process triage --allow read,write --expires 30d
    fdstore token ls
    fdstore token rm ada
    """
    from fdstore.hosts.mcp.access import parse_permissions
    from fdstore.store import tokens
    from fdstore.store.clock import redis_now
    from fdstore.store.processes.process_records import record

    if (name is None) != (action == "ls"):
        raise click.UsageError(f"usage: fdstore token {action}{'' if action == 'ls' else ' NAME'}")
    if (process is None) == (action == "add"):
        raise click.UsageError("token add needs --process, the other actions do not take it")
    if expires == 0:
        raise click.UsageError("--expires 0 is over at once; as 12h or 30d, or without it never")
    try:
        permissions = parse_permissions(",".join(allow))
    except InvalidArgument as error:
        raise click.UsageError(error.problem) from error
    with session.store(use=USES[action]) as store:
        if action == "rm":
            store.run(tokens.remove_token(store.prefix, str(name)))
            session.show({"removed": name}, f"removed {name}")
            return
        if action == "ls":
            damaged: list[Unreadable] = []
            found, now_s = store.run(tokens.list_tokens(store.prefix, damaged)), store.run(redis_now())
            _show(session, found, now_s)
            output.report_unreadable(damaged, as_json=session.as_json)
            return
        try:
            store.run(record(store.prefix, str(process)))
        except NotFound as error:
            by = "its parent" if "." in str(process) else "the first call with this token"
            output.say(f"fdstore: {error}; {by} creates it")
        secret = tokens.new_secret()
        added = store.run(
            tokens.add_token(
                store.prefix,
                secret,
                str(name),
                str(process),
                permissions,
                whole_tree=tree,
                expires_s=expires,
            )
        )
    session.show({"token": secret, "of": added}, secret)
    output.note("it is not shown again; callers send it as: Authorization: Bearer TOKEN")


def _show(session: CliSession, found: list[Token], now_s: float) -> None:
    if session.as_json:
        output.documents(found)
        return
    cells = [
        [
            each.name,
            f"{each.process}*" if each.whole_tree else each.process,
            ",".join(each.permissions),
            _expiry(each, now_s),
            "never" if each.used_at is None else ago(each.used_at, now_s),
        ]
        for each in found
    ]
    output.table(TABLE, cells)


def _expiry(token: Token, now_s: float) -> str:
    if token.expires_at is None:
        return "never"
    return f"{moment(token.expires_at)}{' (expired)' if token.expires_at <= now_s else ''}"

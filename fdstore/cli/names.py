"""The verb mv, and the argument KEY of all verbs."""

from __future__ import annotations

from typing import Any

import click

from fdstore.cli.session import CliSession, verb
from fdstore.errors import Conflict, InvalidArgument


class Key(click.ParamType[str]):
    """A key, with or without the `name:` that other verbs print."""

    name = "key"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from fdstore.text.names import NAME, name_id

        key = str(value).removeprefix(NAME)
        try:
            name_id(key)
        except InvalidArgument as error:
            self.fail(error.problem)
        return key


KEY = Key()


@verb
@click.argument("process", metavar="PROC")
@click.argument("key", metavar="KEY", type=KEY)
@click.argument("new_key", metavar="NEW-KEY", type=KEY)
@click.option("--replace", is_flag=True, help="Replace what NEW-KEY names.")
def mv(session: CliSession, process: str, key: str, new_key: str, replace: bool) -> None:
    """Rename the content name:KEY, and print its new name. A name that is taken is replaced only with
    --replace.

    \b
    fdstore mv triage draft.md plan.md
    """
    with session.process(process, use="make") as opened:
        try:
            made = opened.rename(key, new_key, replace=replace)
        except Conflict as error:
            error.add_note("use --replace to replace it")
            raise
    session.show(made, made.fd)

"""What every verb has in common: --url, --url-file, --prefix and --json, and the way to the store.

The options may stand before the verb too, as at three in the morning they will. What stands after it
counts.

    @verb
    @click.argument("process", metavar="PROC")
    def ls(session: Session, process: str) -> None:
        with session.process(process) as opened: ...

The library is imported when a store is opened, not before: help and usage errors need none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import click

from fdstore.cli import output
from fdstore.errors import InvalidArgument, UnsafeStore

if TYPE_CHECKING:
    from fdstore.client import Process, Store
    from fdstore.local.redis_server import EmbeddedServer
    from fdstore.wire.operation import Operation

T = TypeVar("T")

Use: TypeAlias = Literal["make", "remove", "look"]
"""What a verb does with a store: makes or runs something in it, only removes, or only looks."""


@dataclass
class Session:
    """One call of the command: what its common options say."""

    url: str | None = None
    prefix: str | None = None
    as_json: bool = False

    @property
    def chosen_url(self) -> str | None:
        """The store somebody named; None for the embedded server."""
        from fdstore import settings

        return self.url or settings.read().url

    @property
    def chosen_prefix(self) -> str:
        """What the keys of the store begin with."""
        from fdstore import settings

        return self.prefix or settings.read().prefix

    def check_url(self) -> None:
        """Check the URL of the store that somebody named, before a verb does anything, and whatever it does:
        some look at the embedded server alone. Raises `InvalidArgument`."""
        if self.chosen_url is not None:
            from fdstore.wire.store_url import parse_store_url

            parse_store_url(self.chosen_url)

    @contextmanager
    def store(self, url: str | None = None, *, use: Use = "make") -> Iterator[Store]:
        """The store, connected; the embedded server is started if it is needed and not up. One that is not
        safe to keep content in is refused only where something is made or run."""
        from fdstore.client import connect
        from fdstore.client._sync.store import connect_unsafe

        output.show_logs()
        try:
            store = connect(url or self.url, self.prefix)
        except UnsafeStore as error:
            if use == "make":
                raise
            output.say(f"fdstore: {error.type}: {error}")
            store = connect_unsafe(url or self.url, self.prefix, looking=use == "look")
        with store:
            yield store

    @contextmanager
    def process(self, name: str, *, use: Use = "look") -> Iterator[Process]:
        """A process that exists: looking at `tirage` must not make it. Raises `NotFound`."""
        from fdstore.client import Process
        from fdstore.store.processes import open_child

        with self.store(use=use) as store:
            yield Process(store, store.run(open_child(store.prefix, name)))

    @contextmanager
    def process_or_new(self, name: str) -> Iterator[Process]:
        """A process; a root is made if there is none. Raises `NotFound` (a child)."""
        with self.store() as store:
            yield store.process(name)

    def embedded_server(self) -> EmbeddedServer:
        """The embedded server of this user, running or not."""
        from fdstore import settings
        from fdstore.local.redis_server import EmbeddedServer

        return EmbeddedServer(settings.read().data_dir)


def run_on(process: Process, operation: Operation[T]) -> T:
    """Run an operation on a process; as every method of a `Process`, it is noted as use of its tree."""
    return process._run(operation)


def _sets(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def note(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value:  # what is not given here may have been given before the verb
            setattr(context.ensure_object(Session), name, value)

    return note


def _sets_url(context: click.Context, _: click.Parameter, url: str | None) -> None:
    from fdstore.url_options import warning_of

    if url:
        context.ensure_object(Session).url = url
        if warning := warning_of("--url", url):
            output.say(warning)


def _reads_url(context: click.Context, _: click.Parameter, file: str | None) -> None:
    from fdstore.url_options import read_url_file

    if file:
        try:
            url, warning = read_url_file(file)
        except InvalidArgument as error:
            raise click.BadParameter(error.problem) from error
        context.ensure_object(Session).url = url
        if warning:
            output.say(warning)


def common_options() -> list[click.Parameter]:
    """What may be said to every verb; it goes into the `Session`."""
    return [
        click.Option(
            ["--url"],
            metavar="URL",
            expose_value=False,
            callback=_sets_url,
            help="The store: redis://, rediss://, unix://, sentinel://, redis+cluster://. Others see it: not "
            "with a password. [env: FDSTORE_URL; else the embedded server]",
        ),
        click.Option(
            ["--url-file"],
            metavar="FILE",
            expose_value=False,
            callback=_reads_url,
            help="The same, from the first line of a file that only you can read.",
        ),
        click.Option(
            ["--prefix"],
            metavar="NAME",
            expose_value=False,
            callback=_sets("prefix"),
            help="What all keys begin with. [env: FDSTORE_PREFIX; else fdstore]",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_sets("as_json"),
            help="Print JSON: one document, or one on each line of a list.",
        ),
    ]


pass_session = click.make_pass_decorator(Session, ensure=True)


def verb(body: Callable[..., None]) -> click.Command:
    """Makes a verb of a function whose first parameter is the `Session`; what the common options say
    is in there."""

    @wraps(body)
    def checked(session: Session, *arguments: Any, **options: Any) -> None:
        session.check_url()
        body(session, *arguments, **options)

    command = click.command()(pass_session(checked))
    command.params += common_options()
    return command


raw_option = click.option(
    "--raw", is_flag=True, help="Print control characters as they are, on a terminal too."
)

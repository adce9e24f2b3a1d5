"""The common options of all verbs (--url, --url-file, --prefix, --json) and the connection to the store.

The options may also precede the verb; those after it override them.

    @verb
    @click.argument("process", metavar="PROC")
    def ls(session: CliSession, process: str) -> None:
        with session.process(process) as opened: ...

The library is imported when a store is opened, so help and usage errors do not load it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import click

from fdstore.cli import output
from fdstore.errors import FDStoreError, InvalidArgument, NotFound, NotText, UnsafeStore

if TYPE_CHECKING:
    from fdstore.client import Process, Store
    from fdstore.local.redis_server import EmbeddedServer
    from fdstore.wire.operation import Operation

T = TypeVar("T")

COMPLETE_VARIABLE = "_FDSTORE_COMPLETE"
"""The environment variable that a shell sets for completion."""

NOTHING_FOUND = 1
"""The exit code of a search without a result, as of grep. For errors see `fdstore.cli.FAILED_COMPARISON`."""

Use: TypeAlias = Literal["make", "remove", "look"]
"""A verb's use of a store: "make" creates or runs something, "remove" only removes, "look" only reads."""


@dataclass
class CliSession:
    """One call of the command, with the values of its common options."""

    url: str | None = None
    prefix: str | None = None
    as_json: bool = False

    @property
    def chosen_url(self) -> str | None:
        """The URL from the options or the environment; None for the embedded server."""
        from fdstore.setup import settings

        return self.url or settings.read().url

    @property
    def chosen_prefix(self) -> str:
        """The prefix of all keys of the store."""
        from fdstore.setup import settings

        return self.prefix or settings.read().prefix

    def check_url(self) -> None:
        """Check the store's URL and prefix before a verb runs, even if it uses only the embedded server.
        Raises `InvalidArgument`."""
        from fdstore.setup.settings import DEFAULT_PREFIX
        from fdstore.setup.url_options import is_plain

        url = self.chosen_url
        if url is not None and not is_plain(url):
            from fdstore.wire.store_url import parse_store_url

            parse_store_url(url)
        if self.chosen_prefix != DEFAULT_PREFIX:
            from fdstore.store.keys import check_prefix

            check_prefix(self.chosen_prefix)

    @contextmanager
    def store(self, url: str | None = None, *, use: Use = "make") -> Iterator[Store]:
        """Connect to the store, and start the embedded server if necessary.

        Raises `UnsafeStore` only for the use "make"; for other uses it is a warning.
        """
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
        """Open an existing process. Raises `NotFound`: a misspelled name must not create a process."""
        from fdstore.client import Process
        from fdstore.store.processes.processes import open_child

        with self.store(use=use) as store:
            try:
                handle = store.run(open_child(store.prefix, name))
            except NotFound:
                if said := where_else(store, name):
                    output.say(f"fdstore: {said}")
                raise
            opened = Process(store, handle)
            try:
                yield opened
            except NotText as error:
                if (text := _text_beside(opened, error.fd)) is None:
                    raise
                advice = f"its text is {text}"
                raise NotText(error.fd, error.media_type, error.size_bytes, error.problem, advice) from error

    @contextmanager
    def process_or_new(self, name: str) -> Iterator[Process]:
        """Open a process; create a root that does not exist. Raises `NotFound` for a child."""
        with self.store() as store:
            yield store.process(name)

    def show(self, record: object, text: str) -> None:
        """Print a result: `record` with --json, else `text`."""
        if self.as_json:
            output.document(record)
        else:
            output.line(text)

    def embedded_server(self) -> EmbeddedServer:
        """Return the embedded server of this user, running or not."""
        from fdstore.local.redis_server import EmbeddedServer
        from fdstore.setup import settings

        return EmbeddedServer(settings.read().data_dir)


@contextmanager
def as_usage_errors(option: str = "") -> Iterator[None]:
    """Raise usage errors, of this option if it is named, in place of `InvalidArgument`."""
    try:
        yield
    except InvalidArgument as error:
        if option:
            raise click.BadParameter(error.problem, param_hint=option) from error
        raise click.UsageError(str(error)) from error


def _text_beside(opened: Process, fd: str) -> str | None:
    """Return the name of the text of a document, which is stored beside it; None if there is none."""
    from fdstore.files.unwrapping import TEXT_SUFFIX

    if fd.startswith("name:"):
        with suppress(FDStoreError):
            found = opened.stat(f"{fd}{TEXT_SUFFIX}")
            return found.fd if found.kind == "text" else None
    return None


def where_else(store: Store, process: str | None = None) -> str | None:
    """Return which other prefix has trees, or the tree of a process; None if none has, or the store does not
    say. A person who has run the demo looks for what it made. Only the prefixes that fdstore itself uses are
    looked at: keys are never scanned."""
    from fdstore.setup.settings import OWN_PREFIXES
    from fdstore.store.tree_facts import tree_names

    tree = None if process is None else process.partition(".")[0]
    for prefix in set(OWN_PREFIXES) - {store.prefix}:
        try:
            trees = list(store.run(tree_names(prefix, [])))
        except FDStoreError:  # as a user of Redis who may not read these keys
            continue
        if tree is None and trees:
            return f"the prefix {prefix} has {', '.join(trees[:3])}: --prefix {prefix}"
        if tree in trees:
            return f"the prefix {prefix} has a tree {tree}: --prefix {prefix}"
    return None


def run_on(process: Process, operation: Operation[T]) -> T:
    """Run an operation on a process. It counts as use of the tree, like every method of `Process`."""
    return process._run(operation)


def _sets(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def note(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value:  # an option before the verb may have set it
            setattr(context.ensure_object(CliSession), name, value)

    return note


def _sets_url(context: click.Context, _: click.Parameter, url: str | None) -> None:
    from fdstore.setup.url_arguments import password_warning

    if url:
        context.ensure_object(CliSession).url = url
        if warning := password_warning("--url", url):
            output.say(warning)


def _reads_url(context: click.Context, _: click.Parameter, file: str | None) -> None:
    from fdstore.setup.url_arguments import read_url_file

    if file:
        try:
            url, warning = read_url_file(file)
        except InvalidArgument as error:
            raise click.BadParameter(error.problem) from error
        context.ensure_object(CliSession).url = url
        if warning:
            output.say(warning)


def common_options() -> list[click.Parameter]:
    """Return the options of all verbs; their values go into the `CliSession`."""
    return [
        click.Option(
            ["--url"],
            metavar="URL",
            expose_value=False,
            callback=_sets_url,
            help="URL of the store: redis://, rediss://, unix://, sentinel://, redis+cluster://. Without a "
            "password, since other users can see it. [env: FDSTORE_URL; default: the embedded server]",
        ),
        click.Option(
            ["--url-file"],
            metavar="FILE",
            expose_value=False,
            callback=_reads_url,
            help="Read the URL from the first line of a file that only you can read.",
        ),
        click.Option(
            ["--prefix"],
            metavar="NAME",
            expose_value=False,
            callback=_sets("prefix"),
            help="Prefix of all keys. [env: FDSTORE_PREFIX; default: fdstore]",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_sets("as_json"),
            help="Print JSON: one document, or for lists one per line.",
        ),
    ]


pass_session = click.make_pass_decorator(CliSession, ensure=True)


def warn_without_server(url: str | None) -> None:
    """Say on standard error what to install if there is no `url` and no server that could be started: hosts
    show little of what fails once they use what was set up."""
    if url is not None:
        return
    from fdstore.errors import StartFailed
    from fdstore.local.redis_conf import find_binary

    try:
        find_binary()
    except StartFailed as error:
        output.say(f"fdstore: nothing can be stored yet: {error.problem}; or set FDSTORE_URL")


def verb(body: Callable[..., None]) -> click.Command:
    """Return a command for a function whose first parameter is the `CliSession`, with the common options."""

    @wraps(body)
    def checked(session: CliSession, *arguments: Any, **options: Any) -> None:
        session.check_url()
        body(session, *arguments, **options)

    command = click.command()(pass_session(checked))
    command.params += common_options()
    return command


colour_option = click.option(
    *("--color", "--colour", "colour"),
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colours. auto: on a terminal, without NO_COLOR.",
)
raw_option = click.option("--raw", is_flag=True, help="Do not escape control characters on a terminal.")

"""The verb ui: look at trees, processes and descriptors in a browser."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
import threading
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.session import CliSession, as_usage_errors, verb
from fdstore.errors import InvalidArgument, quoted
from fdstore.setup.optional_packages import frozen_imports, require

if TYPE_CHECKING:
    from fdstore.client._async.store import Store
    from fdstore.inspector.web.inspector import Options


@verb
@click.argument("name", metavar="[TREE|PROC]", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="HOST", help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    metavar="N",
    help="The port; 0 takes a free one.",
)
@click.option(
    *("--allow", "allowed"),
    type=click.Choice(["kill", "answer"]),
    multiple=True,
    help="With kill, processes may be cancelled; with answer, questions of agents answered; repeatable.",
)
@click.option(
    "--export-root",
    metavar="DIR",
    help="The workers' export root on this machine: approvals show which files they overwrite.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser of this machine.")
@click.option("--token", "new_token", is_flag=True, help="Ask for a token; a new one is made and printed.")
@click.option(
    "--token-file",
    metavar="FILE",
    help="Ask for the token in the first line of this file, which only you can read.",
)
@click.option(
    *("--allow-host", "names"),
    multiple=True,
    metavar="NAME",
    help="Another name by which browsers may call this server; repeatable.",
)
def ui(
    session: CliSession,
    name: str | None,
    host: str,
    port: int,
    allowed: tuple[str, ...],
    export_root: str | None,
    is_opened: bool,
    new_token: bool,
    token_file: str | None,
    names: tuple[str, ...],
) -> None:
    """Serve an inspector for the browser: trees, processes and their conversations, descriptors of any
    size, workers, the health of the store. Prints its URL, or that of the page of TREE or PROC, and runs
    until Ctrl-C.

    It only reads, unless --allow kill or --allow answer is given. Without a token it listens on this
    machine alone, and everyone on this machine may look. Beyond it use a token, and a proxy with TLS.

    \b
    fdstore ui --open
    fdstore ui triage.1 --port 8080 --allow kill
    fdstore ui --host 0.0.0.0 --allow-host fd.example.org --token-file token.txt
    """
    require(("starlette", "uvicorn", "jinja2"), "web")
    session.check_url()
    path = path_of(name)
    if new_token and token_file:
        raise click.UsageError("give --token or --token-file, not both")
    token = secrets.token_urlsafe(24) if new_token else read_token(token_file) if token_file else None
    with frozen_imports():
        from fdstore.http.address import listen, origin_of
        from fdstore.http.server import HttpServer
        from fdstore.inspector.web.app import make_app
        from fdstore.inspector.web.inspector import Inspector
    options = _options(host, names, token, allowed, export_root)
    output.show_logs()

    async def serve() -> None:
        async with await _connect(session) as store:
            inspector = Inspector(store, options, lambda: _connect_to_write(session))
            server = HttpServer(make_app(inspector), inspector.stopping)
            with listen(host, port) as listening:
                url = f"{origin_of(listening, options.hosts)}{path}"
                _announce(session, url, options, is_new=new_token)
                if is_opened:
                    threading.Thread(target=_open_browser, args=(url,), daemon=True).start()
                await server.serve(sockets=[listening])

    with as_interrupts():
        asyncio.run(serve())


def path_of(name: str | None) -> str:
    """Return the path of the page of a tree or a process. Raises `InvalidArgument`.

    >>> path_of(None), path_of("triage"), path_of("triage.1")
    ('/', '/tree/triage', '/process/triage.1')
    """
    if name is None:
        return "/"
    from fdstore.store.keys import check_process

    return f"/{'process' if '.' in name else 'tree'}/{check_process(name)}"


def read_token(path: str) -> str:
    """Return the first line of a file that only its owner can read. Raises `UsageError`."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.read(4096).decode("utf-8", "replace").split("\n")[0].strip()
    except OSError as error:
        raise click.UsageError(f"--token-file: {(error.strerror or str(error)).lower()}") from error
    if stat.S_ISREG(mode) and mode & 0o077:
        raise click.UsageError("--token-file: others can read it; chmod 600 it")
    return token


def _options(
    host: str, names: tuple[str, ...], token: str | None, allowed: tuple[str, ...], export_root: str | None
) -> Options:
    """Return the options of the server. Raises `UsageError` for those that do not fit together."""
    from fdstore.http.address import allowed_names, is_loopback
    from fdstore.inspector.web.inspector import Options
    from fdstore.inspector.web.login import Login

    with as_usage_errors():
        if token is not None:
            Login(token)
        elif not is_loopback(host):
            problem = (
                f"{host} can be reached from other machines, so a token is needed: --token or --token-file"
            )
            raise InvalidArgument("host", problem)
        if export_root is not None and not os.path.isdir(export_root):
            raise InvalidArgument("export_root", f"{quoted(export_root)} is not a directory here")
        return Options(
            hosts=tuple(allowed_names(host, names)),
            token=token,
            may_kill="kill" in allowed,
            may_answer="answer" in allowed,
            export_root=export_root,
        )


def _open_browser(url: str) -> None:
    """Open a page, which waits until it is served: the socket listens already."""
    import webbrowser

    if not webbrowser.open(url):
        output.say(f"fdstore: no browser can be started here; open {url}")


async def _connect(session: CliSession) -> Store:
    from fdstore.client._async.store import connect
    from fdstore.inspector.web.inspector import PATIENCE_S

    return await connect(session.url, session.prefix, looking=True, patience=PATIENCE_S)


async def _connect_to_write(session: CliSession) -> Store:
    from fdstore.client._async.store import connect_unsafe

    return await connect_unsafe(session.url, session.prefix, looking=False)


def _announce(session: CliSession, url: str, options: Options, *, is_new: bool) -> None:
    if session.as_json:
        more = {"token": options.token} if is_new else {}
        output.document({"url": url, "kill": options.may_kill, "answer": options.may_answer, **more})
    else:
        output.line(url)
        if is_new:
            output.line(f"token: {options.token}")
        may = ["kill processes"] * options.may_kill + ["answer questions"] * options.may_answer
        permitted = f"may {' and '.join(may)}" if may else "read-only"
        output.say(f"fdstore: {permitted}; Ctrl-C ends it")

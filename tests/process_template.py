"""A process that has imported fdstore and its packages, of which the workers and commands of tests are forks.

    python -P tests/process_template.py SOCKET_FD

A worker's imports take more than a second of processor time, those of a command a quarter, and the tests
start hundreds of each. For each request the template forks a process that takes on the arguments, directory,
environment and streams of the request and runs `main()` of a module, as a new interpreter would. Its parent
becomes the test process, which has made itself the reaper of its descendants until the reply; so it can wait
for the process as for any child.

`ForkedChild` is the side of the test process. A forked command that may start workers has a template of its
own, which was forked before the command began and knows nothing of it: so they are forks too (`StartedHere`).
What depends on the start of an interpreter (its options and environment, the import path, the command line
that others see) needs a `Child` in place of a `ForkedChild`.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, AnyStr, ClassVar, NoReturn

from fdstore.cli import VERBS
from fdstore.local.worker import worker_command
from fdstore.model.providers import CLIENTS, PROVIDERS
from fdstore.setup.optional_packages import frozen_imports
from tests.children import Child
from tests.waiting import PATIENCE_S

COMMAND, WORKER = "fdstore.__main__", "fdstore_workers.__main__"
MODELS = {f"{CLIENTS}.{row.client.partition(':')[0]}" for row in PROVIDERS.values()}
MODELS |= {package for row in PROVIDERS.values() for package in row.packages}
LATER = (
    *("fdstore.hosts.mcp.server", "fdstore.hosts.gateway.relay", "fdstore.demo.scripted_answers"),
    *("celery.app.amqp", "celery.app.control", "celery.app.events", "celery.backends.base"),
    *("anyio._backends._asyncio", "genai_prices.data", "httpcore2", "jinja2", "pathspec", "pydantic_monty"),
    *("fdstore.files.members", "fdstore.programs.interpreter.session", "fdstore.agents.runtime.run_process"),
)
"""What commands import when they need it."""
IMPORTED = (COMMAND, WORKER, "fdstore_workers.worker", "redis", *LATER, *sorted(MODELS))
STARTERS = {"ask", "demo", "gateway", "mcp", "pipe", "run", "up"}
"""The verbs that start workers. Those of others would be new interpreters."""
PR_SET_CHILD_SUBREAPER = 36
MAX_REQUEST_BYTES, MAX_DESCRIPTORS = 1 << 20, 8
INTERPRETER_VARIABLES = ("PYTHON", "LC_", "LANG")
FRESH = "FDSTORE_TEST_FRESH"
"""If set, all workers and commands are new interpreters, as users start them; `make test-all` does so."""


def starts_alike(environ: Mapping[str, str]) -> bool:
    """Return whether an interpreter starts with these variables as the template did, and may be a fork."""
    if os.environ.get(FRESH):
        return False

    def of_interpreter(variables: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in variables.items() if name.startswith(INTERPRETER_VARIABLES)}

    return of_interpreter(environ) == of_interpreter(os.environ)


class ForkedChild(Child[AnyStr]):
    """A fork of the template that runs `main()` of a module. `options` are those of `Child`."""

    def __init__(self, main: str, arguments: Sequence[str], **options: Any) -> None:
        self._main = main
        super().__init__(list(arguments), **options)

    def _execute_child(self, *given: Any, **named: Any) -> None:
        """Start the process, in place of `subprocess`, which has made the pipes."""
        asked = asked_of(self, *given, **named)
        start_fork(self, template(), self._main, asked["args"], asked)


def start_command(*words: str, fresh: bool = False, **options: Any) -> Child[Any]:
    """Start `fdstore` with these words. `fresh`: in a new interpreter, whose memory is that of the command
    alone; otherwise as a fork where it may be one. `options` are those of `Child`."""
    if starts_alike(options.get("env") or os.environ) and not fresh:
        return ForkedChild(COMMAND, words, **options)
    return Child([sys.executable, "-m", "fdstore", *words], **options)


def run_command(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `fdstore` with these words to its end."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_command(*words, text=True, **pipes, **options) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


class StartedHere(subprocess.Popen[AnyStr]):
    """`subprocess.Popen` in a forked command: a worker that would be a new interpreter is a fork too."""

    template: ClassVar[Template]

    def _execute_child(self, *given: Any, **named: Any) -> None:
        asked = asked_of(self, *given, **named)
        start = worker_command()
        if asked["args"][: len(start)] == start and starts_alike(environment_of(asked)):
            start_fork(self, self.template, WORKER, asked["args"][len(start) :], asked)
        else:
            super()._execute_child(*given, **named)  # type: ignore[misc]


def asked_of(process: subprocess.Popen[Any], *given: Any, **named: Any) -> dict[str, Any]:
    """Return the arguments of `Popen._execute_child` by their names."""
    return inspect.signature(Child._execute_child).bind(process, *given, **named).arguments  # type: ignore[attr-defined]


def environment_of(asked: Mapping[str, Any]) -> dict[str, str]:
    return dict(os.environ if asked["env"] is None else asked["env"])


def start_fork(
    process: Any, template: Template, main: str, arguments: Sequence[str], asked: Mapping[str, Any]
) -> None:
    """Start the process of a `Popen`: a fork that runs `main()` of a module."""
    theirs = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
    streams = [number if stream == -1 else stream for number, stream in enumerate(theirs)]
    folder = os.fspath(asked["cwd"] or os.getcwd())
    request = [main, list(arguments), environment_of(asked), folder, asked["start_new_session"]]
    process.pid = template.fork(request, [*streams, *asked["pass_fds"]])
    process._child_created = True
    pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    process._close_pipe_fds(*(asked[name] for name in pipes))


class Template:
    """A process that forks others, of which this one has the other end of the socket. It ends at the latest
    with this process."""

    def __init__(self, requests: socket.socket, wait: Callable[[], object]) -> None:
        self._socket = requests
        self._wait = wait
        self._lock = threading.Lock()

    @classmethod
    def start(cls) -> Template:
        """Start one in a new interpreter."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        return cls(ours, process.wait)

    def fork(self, request: list[Any], descriptors: Sequence[int]) -> int:
        """Fork a process with these streams, and more descriptors, and return its id."""
        with self._lock:
            _adopt_orphans(True)
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
                reply = self._socket.recv(64)
            finally:
                _adopt_orphans(False)
        assert reply, "the template has ended"
        return int(reply)

    def close(self) -> None:
        self._socket.close()
        self._wait()


@cache
def template() -> Template:
    """Return the template of this test process, started at the first call."""
    made = Template.start()
    atexit.register(made.close)
    return made


def _adopt_orphans(on: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


# --- the process itself


def serve(requests: socket.socket) -> str:
    """Fork a process for each request until the socket is closed. In a fork, return the module to run."""
    while True:
        request, given, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, MAX_DESCRIPTORS)
        if not request:
            os._exit(0)
        read_end, write_end = os.pipe()
        between = os.fork()
        if between == 0:
            # its own child is an orphan at once, and so becomes one of the test process
            child = os.fork()
            if child:
                os.write(write_end, b"%d" % child)
                os._exit(0)
            requests.close()
            os.close(read_end)
            os.close(write_end)
            main, *rest = json.loads(request)
            if main == COMMAND and STARTERS.intersection(rest[0]) and (own := fork_template(given)):
                return serve(own)
            become(*rest, streams=given[:3])
            return str(main)
        for number in (write_end, *given):
            os.close(number)
        os.waitpid(between, 0)
        requests.send(os.read(read_end, 64))
        os.close(read_end)


def fork_template(given: Sequence[int]) -> socket.socket | None:
    """Fork a template for the workers of this command. In it return its socket; in the command None."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    forked = os.fork()
    if forked == 0:
        ours.close()
        for number in given:
            os.close(number)
        return theirs
    theirs.close()
    StartedHere.template = Template(ours, lambda: os.waitpid(forked, 0))
    atexit.register(StartedHere.template.close)
    subprocess.Popen = StartedHere  # type: ignore[misc]
    return None


def become(
    arguments: list[str], environ: dict[str, str], folder: str, new_session: bool, *, streams: list[int]
) -> None:
    """Take on what a new process would have been given."""
    if new_session:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.path[:0] = filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv[1:] = arguments
    tempfile.tempdir = None  # else that of the template
    # whether a stream is a terminal, and so how it is buffered, is only known now
    sys.stdin = sys.__stdin__ = _opened(0, "r")
    sys.stdout = sys.__stdout__ = _opened(1, "w")
    sys.stderr = sys.__stderr__ = _opened(2, "w", buffering=1, errors="backslashreplace")


def _opened(number: int, mode: str, **options: Any) -> Any:
    return open(number, mode, closefd=False, **options)


def run_and_exit(run: Callable[[], object]) -> NoReturn:
    """End as the interpreter does, but without freeing all that the template imported: that takes longer than
    most commands."""
    try:
        code = run()
    except SystemExit as end:
        code = end.code
    if isinstance(code, int) or code is None:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit((code or 0) & 0xFF)
    sys.exit(code)  # type: ignore[arg-type]


def main() -> NoReturn:
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    verbs = [home.partition(":")[0] for section in VERBS.values() for home, _ in section.values()]
    with frozen_imports():
        for module in (*IMPORTED, *verbs):
            with suppress(ModuleNotFoundError):  # of an extra that is not installed
                import_module(module)
    run_and_exit(import_module(serve(requests)).main)


if __name__ == "__main__":
    main()

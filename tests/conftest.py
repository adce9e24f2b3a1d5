"""Fixtures of the tests of several folders, among them a private Redis, started once in each test process.

Without a redis-server its fixtures fail instead of skipping: a green run means that these tests ran.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import inspect
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from tests import children

# before they are imported, so that a failed assert shows its values
pytest.register_assert_rewrite(
    "tests.frameworks.conformance.cases",
    "tests.leftovers",
    "tests.slices",
    "tests.store_model",
    "tests.stored_keys",
    "tests.unit.rendering",
)

import tests.parsing  # noqa: E402
import tests.properties  # noqa: E402, F401
from tests.dialects import DialectUnderTest, speaking  # noqa: E402
from tests.order import pytest_collection_modifyitems  # noqa: E402, F401
from tests.slices import check_slice  # noqa: E402
from tests.store_model import StoreModel  # noqa: E402
from tests.stored_keys import check_keys  # noqa: E402
from tests.temporary_files import TemporaryFiles  # noqa: E402
from tests.thorough import (  # noqa: E402, F401
    pytest_deselected,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)

# A shell that starts the tests in the background has them ignore Ctrl-C, nohup the end of the terminal, and
# whatever they start too; with a handler here it is as usual for the commands that are interrupted in tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Whatever the tests start prints the same on every machine: unset, these mean a terminal of the usual kind.
for name in ("PYTHONUNBUFFERED", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)

# A test that names no store would start that of whoever runs it, and write there.
os.environ.pop("FDSTORE_URL", None)
os.environ["FDSTORE_DATA_DIR"] = "/dev/null/each test names its own store"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(TemporaryFiles(), "temporary files")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without the garbage collector, which would visit thousands of modules and tests over and over,
    and exempt them from then on."""
    gc.disable()
    try:
        _begin_with_a_part(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _begin_with_a_part(config: pytest.Config) -> None:
    """If several processes run the tests, import another part of them in each before collecting. In a new
    clone this shares the work of compiling them, which otherwise each process does for every module."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:
        return
    found: set[Path] = set()
    for name in config.args:
        path = config.rootpath / name.partition("::")[0]
        found.update(path.rglob("test_*.py") if path.is_dir() else [path])
    for path in sorted(found)[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        # the collection imports a module that fails or is skipped again, and reports it
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


# for extension modules that count what is left at exit
atexit.register(gc.unfreeze)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function in an event loop of its own, unless a plugin is to run it."""
    is_of_a_plugin = any(pyfuncitem.get_closest_marker(name) for name in ("anyio", "asyncio"))
    if is_of_a_plugin or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    fixtures = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**fixtures))
    return True


@pytest.fixture(autouse=True)
def dialect(request: pytest.FixtureRequest) -> Iterator[DialectUnderTest]:
    """The API of models that agents of the test speak, see `every_dialect`."""
    with speaking(getattr(request, "param", "anthropic")) as spoken:
        yield spoken


@pytest.fixture(autouse=True)
def children_end() -> Iterator[None]:
    """End the processes that the test left running, and fail if there were any."""
    yield
    problems = children.end_remaining_children()
    assert not problems, "\n".join(problems)


def children_of(pid: int) -> list[int]:
    """Return the children of a single-threaded process, oldest first; empty if it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def descendants_of(pid: int) -> Iterator[int]:
    """Yield the running descendants of a process that may have several threads, parents first."""
    tasks: list[Path] = []
    with contextlib.suppress(OSError):
        tasks = [*Path(f"/proc/{pid}/task").iterdir()]
    for task in tasks:
        found = ""
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile; the others have theirs
            found = (task / "children").read_text()
        for child in map(int, found.split()):
            if is_running(child):
                yield child
                yield from descendants_of(child)


def interpreters_of(pid: int) -> set[int]:
    """Return the interpreters of programs among the descendants of a process, without their sandboxes."""
    found = set()
    for each in descendants_of(pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{each}/cmdline").read_bytes().partition(b"\0")[0].endswith(b"/monty"):
                found.add(each)
    return found


def is_running(pid: int) -> bool:
    """Return whether the process exists and has not ended."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.fixture(scope="session")
def redis_server() -> Iterator[PrivateServer]:
    """The server of this test process (with pytest-xdist: of this worker)."""
    with PrivateServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: PrivateServer) -> str:
    """The URL of a running, empty Redis."""
    redis_server.start()  # a test may have stopped it
    _emptying(redis_server.url).flushall()
    return redis_server.url


@functools.cache
def _emptying(url: str) -> redis.Redis:
    """One client for all tests, whose pool replaces a connection to a server that was stopped since: a
    connection of its own costs as much as a short test."""
    return redis.Redis.from_url(url)


@pytest.fixture
def store(redis_url: str) -> Iterator[Store]:
    """A connected store."""
    with fdstore.connect(redis_url) as connected:
        yield connected


@pytest.fixture
def assert_counted() -> Callable[..., None]:
    """`assert_counted(execute)` fails unless every counter matches the stored keys."""
    return check_keys


@pytest.fixture
def store_model() -> type[StoreModel]:
    return StoreModel


@pytest.fixture
def assert_slice() -> Callable[..., None]:
    """`assert_slice(found, text, page_size, mode, start, count)`."""
    return check_slice

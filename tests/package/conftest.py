"""The built wheel and sdist, and environments with nothing but the wheel and its dependencies.

They need the tools of the dependency group `package`, and a registry: `make test-package`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from fdstore.local.redis_server import PrivateServer
from tests.waiting import CHILD_DEADLINE_S

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://example.org/owner/fdstore"


class Dists(msgspec.Struct, frozen=True):
    """The paths of a wheel and an sdist."""

    wheel: Path
    sdist: Path


def build(source: Path, target: Path, *options: str, repository: str = "") -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), *options, str(source)],
        env={**os.environ, "FDSTORE_REPOSITORY_URL": repository},
        check=True,
        capture_output=True,
        timeout=CHILD_DEADLINE_S,
    )


def build_dists(target: Path, repository: str = "") -> Dists:
    build(ROOT, target, repository=repository)
    [wheel], [sdist] = target.glob("*.whl"), target.glob("*.tar.gz")
    return Dists(wheel, sdist)


@pytest.fixture(scope="session")
def dists(tmp_path_factory: pytest.TempPathFactory) -> Dists:
    """Built without an address of the repository."""
    return build_dists(tmp_path_factory.mktemp("dists"))


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Dists:
    """Built with an address of the repository."""
    return build_dists(tmp_path_factory.mktemp("published"), REPOSITORY)


class Installed:
    """An environment with the wheel, a home directory of its own, and a Redis unless `url` is empty."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.home, self.work, self.temporary = folder / "home", folder / "work", folder / "tmp"
        for made in (self.home, self.work, self.temporary):
            made.mkdir()
        self.bin = folder / "venv" / "bin"
        self._environ = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            **({"FDSTORE_URL": url} if url else {}),
        }

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in its working directory."""
        return subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.work,
            env=self._environ,
            input=text,
            capture_output=True,
            text=True,
            timeout=CHILD_DEADLINE_S,
        )

    def output(self, *command: str, text: str = "") -> str:
        """Run a command that must succeed, and return its output."""
        ended = self.run(*command, text=text)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.bin / command[0], *command[1:]],
            cwd=self.work,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def packages(self) -> set[str]:
        listed = uv("pip", "list", "--python", str(self.bin / "python"), "--format", "json")
        return {one["name"] for one in msgspec.json.decode(listed)}


def uv(*arguments: str) -> str:
    # the certificates of the system, as pip uses them
    ended = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        env={**os.environ, "UV_SYSTEM_CERTS": "1", "CC": "false"},
        capture_output=True,
        text=True,
        timeout=CHILD_DEADLINE_S,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


Install = Callable[..., Installed]


@pytest.fixture(scope="session")
def install(dists: Dists, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """`install("web", url=..., python=...)` installs the wheel with extras into an environment of its own,
    without a compiler: every dependency must come as a wheel."""

    def install(*extras: str, url: str = "", python: str = sys.executable) -> Installed:
        folder = tmp_path_factory.mktemp("-".join(extras) or "alone")
        uv("venv", "--quiet", "--python", python, str(folder / "venv"))
        wanted = f"fdstore[{','.join(extras)}] @ {dists.wheel.as_uri()}"
        options = ("--quiet", "--only-binary", ":all:", "--python", str(folder / "venv/bin/python"))
        uv("pip", "install", *options, wanted)
        return Installed(folder, url)

    return install


@pytest.fixture(scope="session")
def server() -> Iterator[PrivateServer]:
    with PrivateServer() as server:
        yield server


def tracked(*folders: str) -> Sequence[str]:
    """Return the files of the repository in some of its folders."""
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, check=True)
    return listed.stdout.decode().rstrip("\0").split("\0")

"""What the documents of one pytest process share: a Redis, a model and a worker."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

import fdstore
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel
from tests.documents import answers, environment, write_files
from tests.worker_process import running_worker

COMMANDS = ("cat", "cut", "grep", "gzip", "head", "sed", "sort", "tail", "tr", "uniq", "wc")


class Reader(NamedTuple):
    """The reader of a page: a directory of its own, and an environment with an empty store and a worker."""

    folder: Path
    environ: Mapping[str, str]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run shell lines, each after the other, until one fails."""
        return subprocess.run(
            ["bash", "-ec", script],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a store with a worker and a scripted model."""
    allowed = [word for name in COMMANDS for word in ("--allow-command", name)]
    with PrivateServer({"appendonly": "yes"}) as server, ScriptedModel(answers) as model:
        environ = environment(server.url, model)
        folder = tmp_path_factory.mktemp("worker")
        with running_worker(folder, *allowed, "--unsandboxed-commands", environ=environ):
            yield environ


@pytest.fixture
def reader(services: dict[str, str], tmp_path: Path) -> Iterator[Reader]:
    """A reader with an empty store and the files that documents assume."""
    folder = tmp_path / "project"
    folder.mkdir()
    write_files(folder)
    yield Reader(folder, {**services, "HOME": str(tmp_path), "FDSTORE_DATA_DIR": str(tmp_path / "data")})
    with redis.Redis.from_url(services["FDSTORE_URL"]) as server:
        server.delete("fdstore:limits", "fdstore:logins")
    with fdstore.connect(services["FDSTORE_URL"]) as store:
        for tree in store.trees():
            store.drop_tree(tree.id, kill=True)

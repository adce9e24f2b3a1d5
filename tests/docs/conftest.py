"""The Redis, the model and the worker that the documents of one pytest process share."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

import fdstore
from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel
from tests.documents import answers, environment, write_files
from tests.waiting import PATIENCE_S
from tests.worker_process import running_worker

COMMANDS = ("cat", "cut", "grep", "gzip", "head", "sed", "sort", "tail", "tr", "uniq", "wc")


class Reader(NamedTuple):
    """The reader of a page: the directory of a project, and an environment with a store and a worker."""

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
            timeout=PATIENCE_S,
        )


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A store with a worker, and a scripted model. The worker may run what pages run, since on a busy machine
    it takes a root over."""
    allowed = [word for name in COMMANDS for word in ("--allow-command", name)]
    folder = tmp_path_factory.mktemp("documents") / "project"
    make_project(folder)
    with PrivateServer({"appendonly": "yes"}) as server, ScriptedModel(answers) as model:
        environ = environment(server.url, model)
        options = (*allowed, "--unsandboxed-commands", "--tools-path", "lib", "--allow-python", "my_tools:*")
        with running_worker(folder, *options, environ=environ, log="../worker.log"):
            yield Reader(folder, environ)


@pytest.fixture
def reader(services: Reader, tmp_path: Path) -> Iterator[Reader]:
    """A reader with an empty store and the files that documents assume."""
    make_project(services.folder)
    homes = {"HOME": str(tmp_path), "FDSTORE_DATA_DIR": str(tmp_path / "data")}
    yield Reader(services.folder, {**services.environ, **homes})
    with redis.Redis.from_url(services.environ["FDSTORE_URL"]) as server:
        server.delete("fdstore:limits", "fdstore:logins")
    with fdstore.connect(services.environ["FDSTORE_URL"]) as store:
        for tree in store.trees():
            drop_with_numbers(store, tree.id, kill=True)


def make_project(folder: Path) -> None:
    """Make the directory that the worker and all pages use as it is for a new page."""
    for path in folder.iterdir() if folder.exists() else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "lib").mkdir(parents=True)
    write_files(folder)

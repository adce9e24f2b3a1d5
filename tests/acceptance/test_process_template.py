"""Forks of the template stand for what users start: they must end, be waited for and be killed alike."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import children_of, is_running
from tests.process_template import starts_alike
from tests.thorough import thorough
from tests.worker_process import WorkerProcess


@pytest.mark.parametrize("fresh", [False, *thorough("without a fork", True)], ids=["forked", "fresh"])
def test_a_worker_has_its_own_options_output_folder_and_exit_code(tmp_path, fresh):
    environ = {**os.environ, "FDSTORE_URL": "redis://127.0.0.1:1"}

    def start(*options: str) -> WorkerProcess:
        log = tmp_path / f"{len(options)}.log"
        return WorkerProcess(log, options, environ=environ, folder=tmp_path, fresh=fresh)

    helped, refused, unreachable = start("--help"), start("--tools-path", "missing"), start()

    assert [each.process.wait(60) for each in (helped, refused, unreachable)] == [0, 2, 1]
    assert helped.log.startswith("Usage: fdstore worker [OPTIONS]")
    assert "Directory 'missing' does not exist" in refused.log
    assert "fdstore: store_unavailable: Redis at redis://127.0.0.1:1: " in unreachable.log
    assert not unreachable.is_alive


def test_a_forked_worker_is_a_child_of_the_test(tmp_path, redis_server):
    worker = WorkerProcess(tmp_path / "worker.log", ["--url", redis_server.url], folder=tmp_path)
    worker.wait_until_ready()

    assert worker.pid in children_of(os.getpid())
    assert Path(f"/proc/{worker.pid}/cwd").resolve() == tmp_path.resolve()

    worker.process.send_signal(signal.SIGKILL)
    assert worker.process.wait(60) == -signal.SIGKILL
    assert worker.process.poll() == -signal.SIGKILL


def test_a_worker_that_a_forked_command_starts_is_a_fork_too_and_outlives_it(fresh):
    assert fresh("up").code == 0
    pid = fresh("status", "--json").document["worker"]["pid"]

    shown = Path(f"/proc/{pid}/cmdline").read_text()
    assert ("process_template" in shown) == starts_alike(fresh.environment), shown
    assert os.getsid(pid) == pid, "it has no session of its own"
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)
    assert fresh.data_dir.joinpath("worker.log").samefile(f"/proc/{pid}/fd/1")

    assert "worker" in fresh("down").out
    assert not is_running(pid)

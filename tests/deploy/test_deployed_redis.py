"""The Redis of deploy/ starts and keeps its data, and the commands of the runbook repair and free it.

Each Redis is started with deploy/redis.conf on a unix socket, once for every redis-server of this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.client import Store
from fdstore.errors import StoreFull
from fdstore.store.doctor.check import examine
from fdstore.store.processes import processes
from fdstore.store.views.workers_now import workers_now
from fdstore.testing import ScriptedModel, call
from fdstore.wire.store_url import parse_store_url
from tests.children import Child
from tests.deploy.deployed import BINARIES, PASSWORD, RUNBOOK, Deployed, write_program
from tests.servers import LOG_REPAIR, file_to_repair, find_client
from tests.waiting import PATIENCE_S, wait_until

# --- Redis


def test_a_redis_server_is_installed():
    assert BINARIES


def test_stored_data_survives_a_crash_and_doctor_finds_no_problem(deployed):
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        store.process("triage").create("kept\n")
        findings = store.run(examine(parse_store_url(store.url)))
        deployed.wait_logged()

    assert [finding for finding in findings if not finding.ok] == []
    # Redis 7.0 loads its log as the default user, and skips transactions that this user may not do
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        assert store.process("triage").read("fd:1").text == "kept\n"


def test_a_torn_log_is_refused_until_repaired_as_in_the_runbook(deployed):
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        proc = store.process("triage")
        proc.create("whole\n")
        proc.create("torn\n")
        deployed.wait_logged()
    log = deployed.folder / "appendonly.aof"
    if not log.exists():
        log = deployed.folder / "appendonlydir" / "appendonly.aof.1.incr.aof"
    os.truncate(log, log.stat().st_size - 20)

    refused = deployed.start()
    assert refused.wait(PATIENCE_S) == 1
    assert re.search(LOG_REPAIR, refused.communicate()[0])

    # one program: what it does is decided by its name
    mender = deployed.folder / "redis-check-aof"
    mender.symlink_to(deployed.binary)
    subprocess.run(
        [mender, "--fix", file_to_repair(deployed.binary, log)],
        input="y\n",
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        assert [each.fd for each in store.process("triage").list()] == ["fd:1"]


# --- words


def shell_of(deployed: Deployed, folder: Path) -> Callable[[str], str]:
    """Run lines of the runbook in a separate folder and return their output."""
    programs = {
        "redis-cli": f"exec {shlex.quote(str(find_client()))}",
        "redis-check-rdb": f"exec -a redis-check-rdb {shlex.quote(str(deployed.binary))}",
        "fdstore": f"exec {shlex.quote(sys.executable)} -m fdstore",
    }
    for name, run in programs.items():
        (folder / name).write_text(f'#!/bin/bash\n{run} "$@"\n')
        (folder / name).chmod(0o755)
    as_user = f'{{ redis-cli --no-auth-warning -s {deployed.socket} --pass {PASSWORD} --user %s "$@"; }}'
    prelude = f"set -euo pipefail\nrc() {as_user % 'reader'}\nra() {as_user % 'admin'}\n"
    environment: dict[str, Any] = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "FDSTORE_URL": deployed.url("worker"),
    }

    def shell(commands: str) -> str:
        done = subprocess.run(
            ["bash", "-c", prelude + commands],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        assert not re.search(r"^(?:ERR|NO[A-Z]+|WRONG[A-Z]+|\(error\)) ", done.stdout, re.M), done.stdout
        return done.stdout

    return shell


@contextmanager
def worker_of(deployed: Deployed, folder: Path) -> Iterator[Store]:
    """Run a worker as long as the block. In every answer its model calls `write_fd`."""
    with ScriptedModel(lambda request: call("write_fd", data="checked\n")) as model:
        environment = os.environ | {"FDSTORE_URL": deployed.url("worker"), **model.environ}
        command = [sys.executable, "-m", "fdstore", "worker", "--concurrency", "1"]
        worker = Child(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with worker, fdstore.connect(deployed.url("worker")) as store:
            wait_until(lambda: store.run(workers_now("fdstore")).workers)
            yield store
            worker.terminate()


ASKS_FIRST = '[tools]\nenabled = ["write_fd"]\n[people]\napprove = ["write_fd"]\n'
"""Of a program that waits for a person's yes before each call of its model."""


@pytest.mark.thorough("operators' commands, none of which users run")
def test_the_shell_commands_of_the_runbook_run_unchanged(deployed, tmp_path):
    """Blocks marked `sh` run in order. Blocks marked `bash` need root, systemd or docker."""
    shell = shell_of(deployed, tmp_path)
    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            proc = store.process("triage")
            proc.create("http 80/tcp\nssh 22/tcp\n" * 300)
            proc.create("to be dropped\n")
            proc.child(["fd:1"])
        program = write_program(tmp_path, ASKS_FIRST)
        shell(f"fdstore run {program} -p go --detach --name nightly")
        blocks = re.findall(r"^```sh\n(.*?)^```", RUNBOOK, re.M | re.S)
        # without a worker `fdstore doctor` would say that work stands still
        with worker_of(deployed, tmp_path) as store:
            wait_until(lambda: store.questions("nightly"), what="the question of nightly")
            # What ends `nightly` for good comes last, whatever the order of the sections is, and `doctor`
            # first: it objects to a process that has waited for a minute.
            ends = ("rm --tree", "kill nightly")
            order = sorted(blocks, key=lambda block: (*(end in block for end in ends), "doctor" not in block))
            said = [shell(block) for block in order]

    assert "removed nightly" in said[-1]
    assert (tmp_path / "services.txt").read_text().startswith("http 80/tcp\n")
    assert stat.S_IMODE((tmp_path / "backup.rdb").stat().st_mode) == 0o600


@pytest.mark.thorough("operators' commands, none of which users run")
def test_a_full_redis_is_freed_as_in_the_runbook(deployed, tmp_path):
    """Fill Redis, then free it without extra memory: a killed agent's descriptor, then a whole tree."""
    shell = shell_of(deployed, tmp_path)
    section = RUNBOOK.partition("## Redis is full")[2].partition("\n## ")[0]
    _, freeing, *_ = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    [removing] = [
        block for block in re.findall(r"^```sh\n(.*?)^```", RUNBOOK, re.M | re.S) if "rm --tree" in block
    ]
    with (
        deployed.running(),
        deployed.client("admin") as admin,
        fdstore.connect(deployed.url("worker")) as store,
    ):
        killed, nightly, other = map(store.process, ("triage", "nightly", "other"))
        killed.create("small")
        killed.create("a line of a log\n" * 500_000)
        nightly.create("a line of a log\n" * 500_000)
        store.run(processes.create_child(nightly.handle, ["fd:1"], state="ready"))
        store.run(processes.cancel("fdstore", "triage"))
        admin.config_set("maxmemory", admin.info("memory")["used_memory"] + 3_000_000)

        def fits(size_bytes: int) -> bool:
            try:
                other.create("x" * size_bytes)
            except StoreFull:
                return False
            return True

        wait_until(lambda: not fits(100_000))
        full_at = admin.info("memory")["used_memory"]

        said = shell(freeing)
        # what was freed is freed by a thread of Redis, and the log's buffers with it
        wait_until(lambda: admin.info("memory")["used_memory"] < full_at - 6_000_000)
        assert fits(1_000_000)
        shell(removing)
        wait_until(lambda: admin.info("memory")["used_memory"] < full_at - 12_000_000)
        assert fits(1_000_000)

        assert re.search(r"^triage +8\.0 MB ", said, re.M)
        assert "closed fd:2" in said
        assert [d.fd for d in killed.list()] == ["fd:1"]
        assert [tree.id for tree in store.trees()] == ["other", "triage"]

"""The workers of deploy/: as the worker user, as units of systemd, in containers.

Docker does not run: its files are compared with the project that they copy.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

import fdstore
from fdstore.store.processes import process_records
from fdstore.testing import ScriptedModel, call, say
from fdstore_workers.__main__ import worker as worker_command
from tests.deploy.deployed import BINARIES, DEPLOY, ROOT, Deployed, write_program
from tests.process_template import run_command
from tests.waiting import wait_until
from tests.worker_process import running_worker

# --- workers


@pytest.mark.thorough("one tenant's worker is tested")
def test_workers_of_two_tenants_share_a_redis(tmp_path):
    program = write_program(tmp_path)
    with tempfile.TemporaryDirectory(prefix="fdstore-") as folder, ExitStack() as stack:
        shared = Deployed(BINARIES[0], Path(folder))
        shared.add_tenant()
        stack.enter_context(shared.running())
        for user, prefix in (("worker", "fdstore"), ("acme", "acme")):
            says = say(f"I am of {prefix}.")
            model = stack.enter_context(ScriptedModel([says]))
            where = ["--url", shared.url(user), "--prefix", prefix]
            stack.enter_context(
                running_worker(tmp_path, *where, "-c", "1", environ=model.environ, log=f"{prefix}.log")
            )
            run_agent = ["run", str(program), "-p", "go", "--detach", "--name", "nightly", *where]
            run_command(*run_agent).check_returncode()

        for user, prefix in (("worker", "fdstore"), ("acme", "acme")):
            with fdstore.connect(shared.url(user), prefix) as store:
                wait_until(lambda store=store: store.tree("nightly").members[0].state == "exited")
                assert store.run(process_records.answer_of(prefix, "nightly")).text == f"I am of {prefix}."
    assert "NOPERM" not in (tmp_path / "fdstore.log").read_text() + (tmp_path / "acme.log").read_text()


@pytest.mark.thorough("each server of this machine")
def test_a_worker_logged_in_as_the_worker_user_runs_an_agent_and_is_listed_as_alive(
    deployed, tmp_path, monkeypatch
):
    found = importlib.util.spec_from_file_location("worker_alive", DEPLOY / "worker_alive.py")
    assert found
    assert found.loader
    worker_alive = importlib.util.module_from_spec(found)
    found.loader.exec_module(worker_alive)
    program = write_program(tmp_path)
    with deployed.running(), ScriptedModel([call("list_fds"), say("done")]) as model:
        monkeypatch.setenv("FDSTORE_URL", deployed.url("worker"))
        for name, value in model.environ.items():
            monkeypatch.setenv(name, value)
        run_agent = ["run", str(program), "-p", "go", "--detach", "--name", "nightly"]
        run_command(*run_agent).check_returncode()
        assert "no answer" in worker_alive.why_dead(1)
        with running_worker(tmp_path, "-c", "1", "--metrics-port", "0") as worker:
            with fdstore.connect() as store:
                wait_until(lambda: store.tree("nightly").members[0].state == "exited")
            [port] = re.findall(r"http://127\.0\.0\.1:(\d+)", worker.log)
            assert worker_alive.main([port]) == 0

    assert worker.process.returncode == 0
    assert "NOPERM" not in (tmp_path / "worker.log").read_text()


def worker_options() -> set[str]:
    return {option for parameter in worker_command.params for option in parameter.opts}


@pytest.mark.parametrize("file", ["compose.yaml", "Dockerfile", "fdstore-worker@.service"])
def test_units_and_containers_start_workers_with_existing_options(file):
    lines = [line for line in (DEPLOY / file).read_text().split("\n") if not line.lstrip().startswith("#")]
    started = [line for line in lines if re.search(r'\bworker"?,? .*--', line)]

    assert len(started) == 1
    assert set(re.findall(r"--[a-z-]+", started[0])) <= worker_options()


def test_the_systemd_unit_of_workers_allows_everything_that_sandboxes_need():
    unit = (DEPLOY / "fdstore-worker@.service").read_text()
    settings = {line.split("=")[0] for line in unit.splitlines() if "=" in line and not line.startswith("#")}
    fatal = {"RestrictNamespaces", "ProtectHostname", "ProtectProc", "ProtectKernelTunables"}
    fatal |= {"ProtectKernelLogs", "SystemCallFilter", "PrivateUsers"}

    assert not fatal & settings


def test_the_unit_and_the_container_limit_memory_and_processes_of_a_worker():
    unit = (DEPLOY / "fdstore-worker@.service").read_text()
    worker = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["worker"]

    limits = dict(re.findall(r"^(MemoryMax|TasksMax|OOMPolicy)=(.+)$", unit, re.M))
    # without the last, systemd ends the supervisor too when the kernel kills its child
    assert limits == {"MemoryMax": "4G", "TasksMax": "4096", "OOMPolicy": "continue"}
    assert (worker["mem_limit"], worker["pids_limit"]) == ("4g", 4096)


def test_systemd_understands_the_units(tmp_path):
    for unit in ("fdstore-redis.service", "fdstore-worker@.service"):
        text = (DEPLOY / unit).read_text()
        sections = re.findall(r"^\[(\w+)\]$", text, re.M)
        assert sections == ["Unit", "Service", "Install"]
        if not shutil.which("systemd-analyze"):
            continue  # all that can be said of it without systemd
        (tmp_path / unit).write_text(
            re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.M)
        )

        checked = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / unit], capture_output=True, text=True, check=False
        )

        assert (checked.returncode, checked.stderr) == (0, "")


# --- containers


def test_compose_starts_redis_as_configured_and_workers_that_can_be_scaled():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]

    assert set(services) == {"redis", "worker"}
    assert not [each for each in services.values() if {"ports", "container_name"} & each.keys()]
    mounted = [volume for each in services.values() for volume in each.get("volumes", ())]
    local = [DEPLOY / value.partition(":")[0] for value in mounted if value.startswith(".")]
    assert local
    assert [path for path in local if not path.exists()] == []
    named = {value.partition(":")[0] for value in mounted if not value.startswith(".")}
    assert named == set(compose["volumes"])
    assert services["worker"]["build"]["dockerfile"] == "deploy/Dockerfile"
    assert services["worker"]["env_file"] == ".env"
    assert "--user probe" in " ".join(services["redis"]["healthcheck"]["test"])


def test_the_image_copies_existing_files_and_runs_as_an_unprivileged_user():
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    let_through = re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.M)

    copied = [
        source for line in re.findall(r"^COPY (?!--)(.+)$", dockerfile, re.M) for source in line.split()[:-1]
    ]

    assert set(copied) == set(let_through)
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert re.findall(r"^USER (.+)$", dockerfile, re.M) == ["fdstore"]
    assert "STOPSIGNAL SIGTERM" in dockerfile
    assert re.search(r'^ENTRYPOINT \["', dockerfile, re.M)
    assert not re.findall(r"^(?:ENV|ARG) .*(?:KEY|TOKEN|PASSWORD|_URL)", dockerfile, re.M)

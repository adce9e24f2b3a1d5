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

import fdstore
from fdstore.store.processes import process_records
from fdstore.testing import ScriptedModel, call, say
from fdstore_workers.__main__ import worker as worker_command
from tests.deploy.deployed import BINARIES, DEPLOY, ROOT, Deployed, write_program
from tests.waiting import wait_until
from tests.worker_process import running_worker

# --- workers


@pytest.mark.thorough("one tenant's worker is tested")
def test_workers_of_two_tenants_share_a_redis(tmp_path: Path) -> None:
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
            subprocess.run([sys.executable, "-m", "fdstore", *run_agent], check=True, capture_output=True)

        for user, prefix in (("worker", "fdstore"), ("acme", "acme")):
            with fdstore.connect(shared.url(user), prefix) as store:
                wait_until(lambda store=store: store.tree("nightly").members[0].state == "exited")
                assert store.run(process_records.answer_of(prefix, "nightly")).text == f"I am of {prefix}."
    assert "NOPERM" not in (tmp_path / "fdstore.log").read_text() + (tmp_path / "acme.log").read_text()


def test_a_worker_logged_in_as_the_worker_user_runs_an_agent_and_is_listed_as_alive(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        subprocess.run([sys.executable, "-m", "fdstore", *run_agent], check=True, capture_output=True)
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
def test_units_and_containers_start_workers_with_existing_options(file: str) -> None:
    lines = [line for line in (DEPLOY / file).read_text().split("\n") if not line.lstrip().startswith("#")]
    started = [line for line in lines if re.search(r'\bworker"?,? .*--', line)]

    assert len(started) == 1
    assert set(re.findall(r"--[a-z-]+", started[0])) <= worker_options()


def test_the_systemd_unit_of_workers_allows_everything_that_sandboxes_need() -> None:
    unit = (DEPLOY / "fdstore-worker@.service").read_text()
    settings = {line.split("=")[0] for line in unit.splitlines() if "=" in line and not line.startswith("#")}
    fatal = {"RestrictNamespaces", "ProtectHostname", "ProtectProc", "ProtectKernelTunables"}
    fatal |= {"ProtectKernelLogs", "SystemCallFilter", "PrivateUsers"}

    assert not fatal & settings


def test_the_unit_and_the_container_limit_memory_and_processes_of_a_worker() -> None:
    unit = (DEPLOY / "fdstore-worker@.service").read_text()
    compose = yaml_outline((DEPLOY / "compose.yaml").read_text())

    limits = dict(re.findall(r"^(MemoryMax|TasksMax|OOMPolicy)=(.+)$", unit, re.M))
    # without the last, systemd ends the supervisor too when the kernel kills its child
    assert limits == {"MemoryMax": "4G", "TasksMax": "4096", "OOMPolicy": "continue"}
    assert compose["services.worker.mem_limit"] == "4g"
    assert compose["services.worker.pids_limit"] == "4096"


def test_systemd_understands_the_units(tmp_path: Path) -> None:
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


def yaml_outline(text: str) -> dict[str, str]:
    """The scalars of a YAML file in the plain style of compose.yaml: "services.redis.image" -> value, and
    "services.redis.command.0" for the items of a list. Fails at a line that is not of that style."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = re.fullmatch(r"( *)(?:(- )(.+)|([\w-]+):(?: (.+))?)", line)
        assert entry, f"line {number}: {line!r}"
        assert len(entry[1]) % 2 == 0, f"line {number} is indented by {len(entry[1])}"
        value = (entry[3] or entry[5] or "").strip()
        assert value.count('"') % 2 == 0, f"line {number}: a quote is not closed"
        assert [value.count(mark) for mark in "[{"] == [value.count(mark) for mark in "]}"], f"line {number}"
        while path and path[-1][0] >= len(entry[1]):
            path.pop()
        parent = ".".join(name for _, name in path)
        name = entry[4] or str(sum(1 for key in found if re.fullmatch(re.escape(parent) + r"\.\d+", key)))
        path.append((len(entry[1]), name))
        key = f"{parent}.{name}" if parent else name
        assert key not in found, f"line {number}: {key} is there twice"
        found[key] = value
    return found


def test_compose_starts_redis_as_configured_and_workers_that_can_be_scaled() -> None:
    compose = yaml_outline((DEPLOY / "compose.yaml").read_text())

    services = {key.split(".")[1] for key in compose if re.fullmatch(r"services\.\w+", key)}
    assert services == {"redis", "worker"}
    assert not [key for key in compose if re.fullmatch(r"services\.\w+\.(ports|container_name)", key)]
    mounted = [value for key, value in compose.items() if re.fullmatch(r"services\.\w+\.volumes\.\d+", key)]
    local = [DEPLOY / value.partition(":")[0] for value in mounted if value.startswith(".")]
    assert local
    assert [path for path in local if not path.exists()] == []
    assert {value.partition(":")[0] for value in mounted if not value.startswith(".")} == {
        key.partition(".")[2] for key in compose if key.startswith("volumes.")
    }
    assert compose["services.worker.build.dockerfile"] == "deploy/Dockerfile"
    assert compose["services.worker.env_file"] == ".env"
    assert "--user probe" in compose["services.redis.healthcheck.test"]


def test_the_image_copies_existing_files_and_runs_as_an_unprivileged_user() -> None:
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

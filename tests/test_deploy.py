"""Tests of deploy/: its Redis starts and keeps its data, its users have exactly the permissions they need,
and every command, option, verb and variable that it names exists.

Each Redis is started with deploy/redis.conf on a unix socket, once for every redis-server of this machine.
Docker does not run: its files are compared with the project that they copy.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import fdstore
from fdstore import settings
from fdstore.cli import VERBS
from fdstore.errors import QuotaExceeded, StoreFull
from fdstore.local.redis_conf import binary_version, installed_binaries
from fdstore.local.redis_server import find_cli
from fdstore.runtime import claim
from fdstore.runtime.queue import Dispatcher
from fdstore.store import leases, process_records, processes
from fdstore.store.check import examine
from fdstore.testing import ScriptedModel, call, say
from fdstore.wire.store_url import parse_store_url
from fdstore_workers.__main__ import worker as worker_command
from tests.children import Child
from tests.waiting import wait_until
from tests.worker_process import running_worker

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
RUNBOOK = (DEPLOY / "runbook.md").read_text("utf-8")
PASSWORD = "0123456789abcdef"
# each program once, under the name redis-server: by another name the same program is another tool
BINARIES = list({path.resolve(): path for path in installed_binaries()}.values())


class Deployed:
    """A Redis as deploy/ runs it. Its users have PASSWORD, set as in the runbook."""

    def __init__(self, binary: Path, folder: Path, *, with_passwords: bool = True) -> None:
        self.binary, self.folder = binary, folder
        self.socket = folder / "redis.sock"
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest() if with_passwords else None
        users = (DEPLOY / "users.acl").read_text()
        if binary_version(binary) < (7, 0):
            [change] = re.findall(r"^sed -i '(s/%R~.*)' /etc/fdstore/users.acl", RUNBOOK, re.M)
            _, old, new, _ = change.split("/")
            users = users.replace(old, new)
        if digest:
            users = re.sub(r"^(user (?:worker|reader|admin) .*)$", rf"\1 #{digest}", users, flags=re.M)
        (folder / "users.acl").write_text(users)

    def add_tenant(self) -> None:
        """Add the user `acme` as in the runbook, with PASSWORD."""
        [commands] = [
            block for block in re.findall(r"^```bash\n(.*?)^```", RUNBOOK, re.M | re.S) if "acme.acl" in block
        ]
        here = commands.replace("/etc/fdstore/users.acl", "users.acl")
        subprocess.run(["bash", "-euc", here], cwd=self.folder, check=True)
        users = (self.folder / "users.acl").read_text()
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
        (self.folder / "users.acl").write_text(
            re.sub(r"^(user acme .*)$", rf"\1 #{digest}", users, flags=re.M)
        )

    def url(self, user: str) -> str:
        return f"unix://{user}:{PASSWORD}@{self.socket}"

    def client(self, user: str, password: str = PASSWORD) -> redis.Redis:
        # no retries: redis-py would repeat a refused login ten times
        once = Retry(NoBackoff(), 0)
        return redis.Redis(unix_socket_path=str(self.socket), username=user, password=password, retry=once)

    def start(self) -> Child[str]:
        """Start the server. The process may end immediately."""
        options = {"dir": ".", "aclfile": "users.acl", "port": "0", "unixsocket": "redis.sock"}
        started = Child(
            [
                str(self.binary),
                str(DEPLOY / "redis.conf"),
                *(word for name, value in options.items() for word in (f"--{name}", value)),
            ],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            deadline_s=None,
        )
        wait_until(lambda: started.poll() is not None or self._answers())
        return started

    def _answers(self) -> bool:
        with self.client("probe", "any") as probe:
            try:
                return bool(probe.ping())
            except redis.RedisError:
                return False

    def wait_logged(self) -> None:
        """Wait until all writes are in the append-only file. On a busy disk Redis delays them for up to two
        seconds, as appendfsync everysec allows."""
        with self.client("worker") as client:
            wait_until(lambda: not client.info("persistence")["aof_buffer_length"])

    @contextmanager
    def running(self) -> Iterator[None]:
        server = self.start()
        try:
            if server.poll() is not None:
                pytest.fail(server.communicate()[0])
            yield
        finally:
            server.kill()
            server.wait()
            if server.stdout:
                server.stdout.close()


@pytest.fixture(params=BINARIES, ids=lambda binary: str(binary).replace(os.sep, "_"))
def deployed(request: pytest.FixtureRequest) -> Iterator[Deployed]:
    """A stopped Redis for each redis-server of this machine."""
    # not tmp_path: the address of a socket holds about 100 bytes
    with tempfile.TemporaryDirectory(prefix="fdstore-") as folder:
        yield Deployed(request.param, Path(folder))


def granted(user: str) -> set[str]:
    """Return the commands that users.acl allows by name."""
    [line] = [
        line for line in (DEPLOY / "users.acl").read_text().split("\n") if line.startswith(f"user {user} ")
    ]
    return {word[1:] for word in line.split() if re.fullmatch(r"\+[a-z|]+", word)}


# --- Redis


def test_a_redis_server_is_installed() -> None:
    assert BINARIES


def test_stored_data_survives_a_crash_and_doctor_finds_no_problem(deployed: Deployed) -> None:
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        store.process("triage").create("kept\n")
        findings = store.run(examine(parse_store_url(store.url)))
        deployed.wait_logged()

    assert [finding for finding in findings if not finding.ok] == []
    # Redis 7.0 loads its log as the default user, and skips transactions that this user may not do
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        assert store.process("triage").read("fd:1").text == "kept\n"


def test_a_torn_log_is_refused_until_repaired_as_in_the_runbook(deployed: Deployed) -> None:
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        proc = store.process("triage")
        proc.create("whole\n")
        proc.create("torn\n")
        deployed.wait_logged()
    log = deployed.folder / "appendonly.aof"
    to_mend = log
    if not log.exists():
        log = deployed.folder / "appendonlydir" / "appendonly.aof.1.incr.aof"
        to_mend = log.with_name("appendonly.aof.manifest")
    os.truncate(log, log.stat().st_size - 20)

    refused = deployed.start()
    assert refused.wait(30) == 1
    assert "redis-check-aof --fix" in refused.communicate()[0]

    # one program: what it does is decided by its name
    mender = deployed.folder / "redis-check-aof"
    mender.symlink_to(deployed.binary)
    subprocess.run([mender, "--fix", to_mend], input="y\n", text=True, stdout=subprocess.PIPE, check=True)
    with deployed.running(), fdstore.connect(deployed.url("worker")) as store:
        assert [each.fd for each in store.process("triage").list()] == ["fd:1"]


# --- users


def test_no_user_can_log_in_before_a_password_is_set(deployed: Deployed) -> None:
    open_door = Deployed(deployed.binary, deployed.folder, with_passwords=False)

    with open_door.running():
        for user, password in (("default", ""), ("worker", ""), ("worker", PASSWORD), ("admin", PASSWORD)):
            with open_door.client(user, password) as client, pytest.raises(redis.AuthenticationError):
                client.ping()
        with open_door.client("probe", "any") as probe, pytest.raises(redis.exceptions.NoPermissionError):
            probe.get("fdstore:trees")


def test_the_worker_user_can_run_every_client_operation_and_nothing_else(
    deployed: Deployed, tmp_path: Path
) -> None:
    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            proc = store.process("triage")
            proc.create("one\ntwo\n" * 2000)
            child = proc.child(["fd:1"])
            assert child.read("fd:1#L2").text == "two\n"
            assert child.search("fd:1", "t.o").matches == 2000
            child.extract("fd:1", mode="line", start=2)
            child.export("fd:1", tmp_path / "out.txt")
            child.fork().end()
            proc.close("fd:1")
            child.end()
            dispatcher = Dispatcher(deployed.url("worker"))
            dispatcher.wake("triage")
            dispatcher.close()
        with deployed.client("worker") as client, deployed.client("admin") as admin:
            refused_before = [entry["object"] for entry in admin.acl_log()]
            for command in ("KEYS *", "FLUSHALL", "CONFIG GET dir", "ACL LIST", "GET other", "SHUTDOWN"):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    client.execute_command(*command.split())

    # denied and ignored: CLIENT SETINFO by redis-py on some servers, and the check on connecting whether a
    # truncated log is loaded
    assert set(refused_before) <= {"client", "client|setinfo", "config", "config|get"}


def test_the_reader_user_can_read_and_cannot_write(deployed: Deployed) -> None:
    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            store.process("triage").create("text\n")
        with deployed.client("worker") as worker:  # a user with write access would record the use
            worker.hset("fdstore:{triage}", "used_at", "1000000000")
        with deployed.client("reader") as reader:
            assert reader.hget("fdstore:{triage}:triage:fd:1:pages", "1") == b"text\n"
            assert reader.zrange("fdstore:trees", 0, -1) == [b"triage"]
            for command in ("SET fdstore:x 1", "KEYS *", "GET other", "EVAL return 0", "FLUSHALL"):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    reader.execute_command(*command.split())
        [row] = re.findall(r"^\| `reader` .*$", RUNBOOK, re.M)
        verbs = re.findall(r"`fdstore (\w+)`", row)
        for verb in verbs:
            words = {"ls": ["triage"], "holders": ["triage", "1"]}.get(verb, [])
            line = [verb, *words, "--url", deployed.url("reader")]
            subprocess.run([sys.executable, "-m", "fdstore", *line], check=True, capture_output=True)

    assert verbs


def test_every_command_in_the_code_is_allowed_for_the_worker_user() -> None:
    lua = "".join(path.read_text() for path in (ROOT / "fdstore/store/lua").glob("*.lua"))
    python = "".join(path.read_text() for path in (ROOT / "fdstore/store").glob("*.py"))

    used = set(re.findall(r"redis\.p?call\('(\w+)'", lua)) | set(
        re.findall(r"\(\s*\"([A-Z]{3,})\", ", python)
    )

    allowed = {name.partition("|")[0] for name in granted("worker")}
    does_without = {"config"}
    assert {command.lower() for command in used} - allowed == does_without, "users.acl must allow these"


def test_the_users_can_access_the_default_keys() -> None:
    prefix, queue = settings.DEFAULT_PREFIX, f"~{settings.queue_prefix(settings.DEFAULT_PREFIX)}*"
    expected = {
        "worker": [f"~{prefix}:[^l]*", f"%R~{prefix}:limits", queue],
        "reader": [f"~{prefix}:*", queue],
    }
    for user, patterns in expected.items():
        [line] = re.findall(rf"^user {user} .*$", (DEPLOY / "users.acl").read_text(), re.M)
        assert re.findall(r"(?:%R)?~\S+", line) == patterns


def test_the_worker_user_reads_ceilings_and_only_the_operator_sets_them(deployed: Deployed) -> None:
    set_ceiling = [sys.executable, "-m", "fdstore", "limits", "set", "tree_fds", "1", "--url"]
    with deployed.running():
        subprocess.run([*set_ceiling, deployed.url("admin")], check=True, capture_output=True)

        with fdstore.connect(deployed.url("worker")) as store:
            proc = store.process("triage")
            proc.create("one")
            with pytest.raises(QuotaExceeded):
                proc.create("two")
        refused = subprocess.run([*set_ceiling, deployed.url("worker")], capture_output=True, check=False)
        with deployed.client("worker") as client:
            if binary_version(deployed.binary) >= (7, 0):
                for command in (
                    "HSET fdstore:limits tree_fds 9",
                    "DEL fdstore:limits",
                    "UNLINK fdstore:limits",
                ):
                    with pytest.raises(redis.exceptions.NoPermissionError):
                        client.execute_command(*command.split())
                assert refused.returncode == 1


REACHES_OTHERS = """
ZREM fdstore:trees triage
ZADD fdstore:trees 0 triage
ZRANGE fdstore:trees 0 -1
ZRANGE fdstore:workers 0 -1
GET fdstore:sweeper
HGETALL fdstore:{triage}
HSET fdstore:{triage} live 9
UNLINK fdstore:{triage}
HGET fdstore:limits tree_fds
MSET acme:x 1 fdstore:x 1
RENAME acme:sweeper fdstore:sweeper
LPUSH fdq:fdstore:queue 7
RPOP fdq:fdstore:queue
HGETALL fdq:fdstore:unacked
ZADD fdq:fdstore:unacked_index 1 tag
SET fdq:fdstore:unacked_mutex 1
"""


def test_a_tenant_cannot_access_keys_of_another(deployed: Deployed) -> None:
    deployed.add_tenant()
    with deployed.running():
        for user, prefix in (("worker", "fdstore"), ("acme", "acme")):
            with fdstore.connect(deployed.url(user), prefix) as store:
                store.process("triage").create(f"of {prefix}\n")
                dispatcher = Dispatcher(store.url, prefix=prefix)
                dispatcher.wake("triage")
                dispatcher.close()
        with deployed.client("acme") as tenant:
            for command in REACHES_OTHERS.strip().splitlines():
                with pytest.raises(redis.exceptions.NoPermissionError):
                    tenant.execute_command(*command.split())
            for keys in ([], ["fdstore:trees"]):
                with pytest.raises(redis.ResponseError, match=r"(?i)permission|can't access"):
                    tenant.eval("return redis.call('ZREM', 'fdstore:trees', 'triage')", len(keys), *keys)

        with fdstore.connect(deployed.url("worker")) as store:
            assert store.process("triage").read("fd:1").text == "of fdstore\n"
            assert [process.id for process in store.processes()] == ["triage"]
        with deployed.client("admin") as admin:
            assert (admin.llen("fdq:fdstore:queue"), admin.llen("fdq:acme:queue")) == (1, 1)


def test_a_user_restricted_to_one_tree_could_change_the_list_of_all_trees(deployed: Deployed) -> None:
    """The runbook therefore advises against such a user: the writes that it needs can remove other trees."""
    users = deployed.folder / "users.acl"
    [worker] = re.findall(r"^user worker .*$", users.read_text(), re.M)
    only_one = re.sub(r"(?:%R)?~\S+", "", worker).replace("user worker", "user one")
    with users.open("a") as file:
        file.write(f"{only_one} ~fdstore:{{triage}}* ~fdstore:trees ~fdstore:limits\n")

    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            store.process("other").create("text\n")
        with fdstore.connect(deployed.url("one")) as store:
            store.process("triage").create("text\n")
        with deployed.client("one") as one:
            with pytest.raises(redis.exceptions.NoPermissionError):
                one.hgetall("fdstore:{other}")
            assert one.zrem("fdstore:trees", "other") == 1

    assert "A user of one tree alone cannot be made" in RUNBOOK


# --- workers


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
                wait_until(lambda store=store: store.tree("nightly").members[0].state == "exited", 60)
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
        assert worker_alive.main() == 1
        with running_worker(tmp_path, "-c", "1") as worker:
            with fdstore.connect() as store:
                wait_until(lambda: store.tree("nightly").members[0].state == "exited")
            wait_until(lambda: worker_alive.main() == 0)

    assert worker.process.returncode == 0
    assert "NOPERM" not in (tmp_path / "worker.log").read_text()


def write_program(folder: Path) -> Path:
    program = folder / "nightly.toml"
    program.write_text('[model]\nname = "any"\n[prompt]\nsystem = "Go."\n[tools]\nenabled = ["list_fds"]\n')
    return program


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


# --- words


def test_every_variable_of_the_example_is_read_by_the_code() -> None:
    example = (DEPLOY / "fdstore.env.example").read_text()
    ours = set(re.findall(r"\"((?:FDSTORE|XDG)_\w+)\"", inspect.getsource(settings)))
    sdk = Path(anthropic.Anthropic.__init__.__code__.co_filename).read_text("utf-8")
    theirs = set(re.findall(r"environ\.get\(\"(ANTHROPIC_\w+)\"", sdk))

    named = set(re.findall(r"^#?([A-Z][A-Z0-9_]+)=", example, re.M))

    assert named - ours - theirs == set()
    assert {name for name in ours if name.startswith("FDSTORE_")} <= named


def test_every_verb_and_section_that_the_runbook_names_exists() -> None:
    code = re.findall(r"^```\w+\n(.*?)^```", RUNBOOK, re.M | re.S) + re.findall(r"`([^`\n]+)`", RUNBOOK)
    verbs = set(re.findall(r"\bfdstore ([a-z]+)\b", "\n".join(re.sub(r"#.*", "", part) for part in code)))
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^##+ (.+)$", RUNBOOK, re.M)
    }

    assert verbs - {verb for section in VERBS.values() for verb in section} == set()
    assert set(re.findall(r"\]\(#([^)]+)\)", RUNBOOK)) <= headings


def test_the_durations_in_the_runbook_match_the_code() -> None:
    lapse = (ROOT / "fdstore/store/lua/lapse.lua").read_text()
    [doublings] = re.findall(r"^local MAX_DOUBLINGS = (\d+)$", lapse, re.M)
    said = " ".join(RUNBOOK.split())

    assert f"after {leases.WAKE_AGAIN_S:g} s at first, then after pauses that double" in said
    assert f"up to {leases.WAKE_AGAIN_S * 2 ** int(doublings):g} s." in said
    assert f"{leases.LEASE_S:g} s until the lease is over" in said
    assert f"for up to {claim.STOP_GRACE_S:g} s, gives it back" in said


def test_the_runbook_lists_the_redis_command_with_the_most_time_last() -> None:
    [line] = re.findall(r"^rc INFO commandstats .*$", RUNBOOK, re.M)
    stats = "".join(
        f"cmdstat_{name}:calls={calls},usec={usec},usec_per_call=1.00\r\n"
        for name, calls, usec in (("get", 9, 1000), ("hget", 70, 99), ("evalsha", 8, 20000))
    )

    found = subprocess.run(
        ["bash", "-c", f"rc() {{ cat; }}\n{line}"], input=stats, capture_output=True, text=True, check=True
    )

    assert re.findall(r"cmdstat_(\w+)", found.stdout) == ["hget", "get", "evalsha"]


def shell_of(deployed: Deployed, folder: Path) -> Callable[[str], str]:
    """Run lines of the runbook in a separate folder and return their output."""
    programs = {
        "redis-cli": f"exec {shlex.quote(str(find_cli()))}",
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
            timeout=120,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        assert not re.search(r"^(?:ERR|NO[A-Z]+|WRONG[A-Z]+|\(error\)) ", done.stdout, re.M), done.stdout
        return done.stdout

    return shell


def test_the_shell_commands_of_the_runbook_run_unchanged(deployed: Deployed, tmp_path: Path) -> None:
    """Blocks marked `sh` run in order. Blocks marked `bash` need root, systemd or docker."""
    shell = shell_of(deployed, tmp_path)
    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            proc = store.process("triage")
            proc.create("http 80/tcp\nssh 22/tcp\n" * 300)
            proc.create("to be dropped\n")
            proc.child(["fd:1"])
        shell(f"fdstore run {write_program(tmp_path)} -p go --detach --name nightly")
        blocks = re.findall(r"^```sh\n(.*?)^```", RUNBOOK, re.M | re.S)
        # what ends `nightly` for good comes last, whatever the order of the sections is
        said = [shell(block) for block in sorted(blocks, key=lambda block: "rm --tree" in block)]

    assert "removed nightly" in said[-1]
    assert (tmp_path / "services.txt").read_text().startswith("http 80/tcp\n")
    assert stat.S_IMODE((tmp_path / "backup.rdb").stat().st_mode) == 0o600


def test_a_full_redis_is_freed_as_in_the_runbook(deployed: Deployed, tmp_path: Path) -> None:
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


def test_every_copy_of_the_data_in_the_runbook_is_readable_by_its_owner_only() -> None:
    installed = re.findall(r"^install .*(?:rdb|fdstore-redis)$", RUNBOOK, re.M)

    assert installed
    assert all(re.search(r" -m [67]00 ", line) for line in installed)
    assert all("cp -a " in line for line in re.findall(r"^cp .*", RUNBOOK, re.M))
    assert "\nUMask=0077\n" in (DEPLOY / "fdstore-redis.service").read_text()

"""A Redis as deploy/ runs it, and the files of deploy/."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fdstore.local.redis_conf import binary_version, installed_binaries
from tests.children import Child
from tests.servers import users_file
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
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
        users = users_file(binary_version(binary)).read_text()
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


def write_program(folder: Path, tools: str = '[tools]\nenabled = ["list_fds"]\n') -> Path:
    """Write `nightly.toml` with the section `tools`, and what follows there."""
    program = folder / "nightly.toml"
    program.write_text(f'[model]\nname = "any"\n[prompt]\nsystem = "Go."\n{tools}')
    return program

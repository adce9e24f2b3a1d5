"""Private servers, which leave nothing."""

from __future__ import annotations

import pytest
import redis

from fdstore.errors import StoreUnavailable
from fdstore.local.redis_server import PrivateServer
from tests.on_redis.embedded_server.servers import ask, setting


def test_a_private_server_is_empty_and_leaves_nothing(redis_url):
    with PrivateServer() as server:
        directory, pid = server.directory, server.pid
        assert server.url != redis_url
        assert ask(server, "DBSIZE") == 0
        assert setting(server, "appendonly") == "no"

    assert pid is not None
    assert not directory.exists()
    assert server.pid is None


def test_a_private_server_keeps_port_and_logged_data_after_a_crash(binary):
    with PrivateServer({"appendonly": "yes", "appendfsync": "always"}, port=True, binary=binary) as server:
        url = server.url
        assert url.startswith("redis://127.0.0.1:")
        ask(server, "SET", "page", "text")

        server.kill()
        assert server.pid is None
        with pytest.raises(redis.ConnectionError):
            ask(server, "PING")
        server.restart()

        assert server.url == url
        assert ask(server, "GET", "page") == "text"


def test_a_private_server_with_an_invalid_setting_reports_the_message_of_redis():
    with pytest.raises(StoreUnavailable, match="no-such-setting"), PrivateServer({"no-such-setting": 1}):
        pass

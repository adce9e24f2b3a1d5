"""Clients of HTTP under the proxies and certificates that other programs have set."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.loop.models.base import ModelFailed
from fdstore.http.client import UnusableSetting, environment_problems, goes_directly, open_client
from fdstore.testing import ScriptedModel, say
from tests.unit.agents.loop.model_client import ClientUnderTest
from tests.unit.agents.loop.model_client import open_client as open_model

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
UNUSABLE = [
    ("ALL_PROXY", "socks5://127.0.0.1:7891", r"\$ALL_PROXY is a SOCKS proxy.*pip install socksio"),
    ("all_proxy", "socks5h://127.0.0.1:7891", r"\$all_proxy is a SOCKS proxy.*unset all_proxy"),
    ("ALL_PROXY", "socks://127.0.0.1:7891", r"\$ALL_PROXY has a scheme that is none of http, https, socks5"),
    ("HTTPS_PROXY", "ftp://127.0.0.1", r"\$HTTPS_PROXY has a scheme that is none of"),
    ("HTTPS_PROXY", "http://proxy:port", r"\$HTTPS_PROXY is not the URL of a proxy"),
    ("HTTPS_PROXY", "http://proxy:99999", r"\$HTTPS_PROXY is not the URL of a proxy"),
    ("HTTPS_PROXY", "http://[proxy", r"\$HTTPS_PROXY is not the URL of a proxy"),
    ("HTTPS_PROXY", "http://user:secret@:3128", r"\$HTTPS_PROXY is not the URL of a proxy"),
    ("HTTPS_PROXY", "http://user:\udcff@proxy:3128", r"\$HTTPS_PROXY is not the URL of a proxy"),
    ("SSL_CERT_FILE", "/does/not/exist", r"\$SSL_CERT_FILE cannot be used for TLS: No such file"),
    ("SSL_CERT_FILE", "/dev/null", r"\$SSL_CERT_FILE cannot be used for TLS"),
]


@pytest.fixture(autouse=True)
def only_these_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def fetch(url: str) -> str:
    async with open_client() as client:
        return (await client.get(url)).text


@pytest.mark.parametrize(("name", "value", "words"), UNUSABLE)
def test_what_cannot_be_used_fails_the_request_in_words_that_name_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(UnusableSetting, match=words) as raised:
        asyncio.run(fetch("https://model.invalid"))

    assert environment_problems() == [str(raised.value)]
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(("name", "value", "words"), UNUSABLE)
def test_a_model_that_cannot_be_asked_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    model = AnthropicModel(api_key="any", base_url="https://model.invalid")
    client = ClientUnderTest(model)

    with pytest.raises(ModelFailed, match=f"could not be asked: {words}"):
        client.query()

    model.close()
    assert client.pauses == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name, value, _ in UNUSABLE),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("ALL_PROXY", "http://127.0.0.1:1"),
        ("NO_PROXY", "localhost,fe80::/10"),
        ("NO_PROXY", "[::1]"),
        ("NO_PROXY", "http://[,:::,/,a:b:c,*/8,%"),
    ],
)
def test_a_server_on_this_machine_is_reached_whatever_is_set(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with ScriptedModel([say("Hi.")]) as scripted, open_model(scripted) as client:
        assert client.query().text == "Hi."


class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def proxy() -> Iterator[str]:
    """A proxy that answers each request with the address that it was asked for."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_a_request_to_another_machine_goes_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with proxy() as url:
        monkeypatch.setenv(name, url)

        assert asyncio.run(fetch("http://model.invalid/v1")) == "http://model.invalid/v1"


@pytest.mark.parametrize(
    ("url", "no_proxy"),
    [
        ("http://localhost", ""),
        ("http://a.localhost.:8080", ""),
        ("http://127.8.9.1", ""),
        ("http://[::1]", ""),
        ("http://[::ffff:127.0.0.1]", ""),
        ("http://0.0.0.0:8000", ""),
        ("https://example.com", "*"),
        ("https://example.com", "a, example.com"),
        ("https://API.example.com", ".EXAMPLE.com"),
        ("https://api.example.com", "example.com"),
        ("https://api.example.com", "*.example.com"),
        ("https://example.com", "example.com:443"),
        ("https://example.com:8443", "example.com:8443"),
        ("https://example.com", "https://example.com"),
        ("http://10.1.2.3", "10.0.0.0/8"),
        ("http://[fe80::1]", "localhost,fe80::/10"),
        ("http://[fd00::1]:80", "[fd00::1]"),
        ("http://[fd00::1]:80", "[fd00::1]:80"),
        ("http://[fd00::1]", "fd00::1"),
    ],
)
def test_a_host_of_no_proxy_or_of_this_machine_takes_no_proxy(url: str, no_proxy: str) -> None:
    assert goes_directly(httpx2.URL(url), no_proxy)


@pytest.mark.parametrize(
    ("url", "no_proxy"),
    [
        ("https://example.com", ""),
        ("https://example.com", ",,"),
        ("https://notexample.com", "example.com"),
        ("https://example.com", "api.example.com"),
        ("https://example.com", "example.com:80"),
        ("https://example.com", "http://example.com"),
        ("http://10.1.2.3", "11.0.0.0/8,10.1.2.4,::/0"),
        ("http://[fe80::1]", "fd00::/8,0.0.0.0/0"),
        ("http://localhost.example.com", "localhost"),
        ("http://127.0.0.1.example.com", ""),
    ],
)
def test_any_other_host_takes_the_proxy(url: str, no_proxy: str) -> None:
    assert not goes_directly(httpx2.URL(url), no_proxy)

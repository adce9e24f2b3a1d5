"""Which keys the clients of models send, and to which server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fdstore.agents.loop.models.base import ModelFailed
from fdstore.agents.loop.models.providers import access_here, missing, open_model
from fdstore.model.model_servers import AllowedServer, ModelAccess, ModelServer
from fdstore.model.providers import PROVIDERS
from fdstore.testing import ScriptedModel, say
from tests.dialects import DIALECTS
from tests.recording_server import RecordingServer, recording
from tests.unit.agents.loop.model_client import ClientUnderTest

SECRETS = {
    "ANTHROPIC_API_KEY": "secret-1",
    "ANTHROPIC_AUTH_TOKEN": "secret-2",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Gateway-Key: secret-3\nCookie: secret-4",
    "OPENAI_API_KEY": "secret-7",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway-Key: secret-8",
    "OPENAI_ORG_ID": "secret-9",
    "OPENAI_ADMIN_KEY": "secret-10",
    "FDSTORE_URL": "redis://worker:secret-5@redis:6379/0",
    "AWS_SECRET_ACCESS_KEY": "secret-6",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def ask(server: ModelServer, environ: dict[str, str] | None = None) -> str:
    """Ask, and return the error."""
    model = open_model(server, SECRETS if environ is None else environ)
    try:
        with pytest.raises(ModelFailed) as failed:
            ClientUnderTest(model).query(within_s=2)
        return str(failed.value)
    finally:
        model.close()


EACH = pytest.mark.parametrize("provider", DIALECTS)


@EACH
def test_a_server_of_a_program_gets_no_key_of_the_environment(provider: str) -> None:
    with recording() as thief:
        error = ask(ModelServer(provider=provider, base_url=thief.url))

    assert len(thief.seen) == 1
    assert "secret" not in thief.text
    assert "secret" not in error


@EACH
def test_a_server_of_a_program_gets_the_variable_that_the_program_names_and_nothing_else(
    provider: str,
) -> None:
    with recording() as server:
        named = ModelServer(provider=provider, base_url=server.url, api_key_env="GPU_KEY")
        ask(named, {**SECRETS, "GPU_KEY": " mine "})

    assert server.seen[0]["authorization"] == "Bearer mine"
    assert "secret" not in server.text


@EACH
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_server_is_not_followed(provider: str, status: int) -> None:
    with recording() as thief, recording(status, {"location": f"{thief.url}/v1/messages"}, b"") as server:
        named = ModelServer(provider=provider, base_url=server.url, api_key_env="GPU_KEY")
        error = ask(named, {"GPU_KEY": "mine"})

    assert (len(server.seen), thief.seen) == (1, [])
    assert f"redirects to another one, {thief.url}" in error
    assert "mine" not in error


def test_a_redirect_of_the_own_server_of_the_sdk_is_not_followed_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with recording() as thief, recording(307, {"location": thief.url}, b"") as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        error = ask(ModelServer())

    assert (len(server.seen), thief.seen) == (1, [])
    assert "write it in ANTHROPIC_BASE_URL" in error


def test_the_own_server_of_the_sdk_gets_what_the_sdk_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    with recording() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        ask(ModelServer())

    assert "secret-1" in server.text
    assert server.seen[0]["x-gateway-key"] == "secret-3"
    assert "secret-5" not in server.text


def test_a_key_that_no_header_can_hold_is_refused_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("anthropic", "openai"):
        named = ModelServer(provider=provider, base_url="http://a", api_key_env="GPU_KEY")
        with pytest.raises(ModelFailed, match="GPU_KEY has characters that cannot be sent") as refused:
            open_model(named, {"GPU_KEY": "se\ncret"})
        assert "cret" not in str(refused.value)

    monkeypatch.setenv("ANTHROPIC_API_KEY", "se\u00e4cret")
    with pytest.raises(ModelFailed, match="ANTHROPIC_API_KEY has characters") as refused:
        open_model(ModelServer())
    assert "cret" not in str(refused.value)


def test_a_variable_that_is_not_set_is_named() -> None:
    server = ModelServer(base_url="http://a", api_key_env="GPU_KEY")

    with pytest.raises(ModelFailed, match=r"the variable GPU_KEY, .*, is not set"):
        open_model(server, {"GPU_KEY": " "})
    assert "GPU_KEY" in missing(server, {})
    assert missing(server, {"GPU_KEY": "x"}) == ""


def test_what_a_worker_registers_has_names_alone() -> None:
    allowed = (AllowedServer("http://a", "FDSTORE_URL"), AllowedServer("http://b", "NOT_SET"))
    here = access_here(
        ModelAccess(all_allowed=False, allowed=allowed), {**SECRETS, "OPENAI_BASE_URL": "http://u:p@h"}
    )

    assert here.variables == ("FDSTORE_URL",)
    assert here.own_urls["openai"] == ""
    assert "secret" not in repr(here)
    assert "NOT_SET" in here.missing(ModelServer(base_url="http://b", api_key_env="NOT_SET"))
    assert here.missing(ModelServer(base_url="http://b")) == ""


def test_what_is_missing_for_each_provider_is_known_without_an_sdk(tmp_path: Path) -> None:
    look = """
import json, sys
from fdstore.agents.loop.models.providers import access_here
from fdstore.model.model_servers import ModelAccess
found = access_here(ModelAccess()).keyless
print(json.dumps([found, sorted({"anthropic", "openai", "boto3", "google.auth"} & sys.modules.keys())]))
"""
    keys = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b\nc", "HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", look], env=keys, capture_output=True, text=True, check=True)

    found, imported = json.loads(ran.stdout)

    assert imported == []
    assert found["anthropic"] == ""
    assert found["openai"] == "OPENAI_API_KEY has characters that cannot be sent, such as a line end"
    assert "it needs AWS_REGION or AWS_DEFAULT_REGION" in found["bedrock"]
    assert all(found[name] for name in ("vertex", "foundry"))


def test_a_provider_without_keys_lacks_none(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: Any = PROVIDERS
    monkeypatch.setitem(rows, "keyless", msgspec.structs.replace(PROVIDERS["openai"], keys=()))
    monkeypatch.delenv("OPENAI_API_KEY")

    assert missing(ModelServer(provider="keyless")) == ""
    assert "set OPENAI_API_KEY" in missing(ModelServer(provider="openai"))


@pytest.mark.parametrize("url", ["ftp://a", "http://", "nonsense", "http://[::"])
def test_a_variable_that_is_not_the_url_of_a_server_is_missing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)

    for name in ("openai", "openai-responses"):
        assert missing(ModelServer(provider=name)).startswith("OPENAI_BASE_URL is not the URL of a server")


@EACH
@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-8", "application/json"])
def test_an_answer_of_another_kind_fails_at_once_and_names_it(provider: str, kind: str) -> None:
    with recording(200, {"content-type": kind}, b"<form action='/login'>") as page:
        error = ask(ModelServer(provider=provider, base_url=page.url))

    assert len(page.seen) == 1
    assert f"answered 200 with {kind.partition(';')[0]}, not with a stream of events" in error
    assert error.endswith("check base_url")


@EACH
@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"choices": []}', b'{"choices": [{}], "output": 1}', b"{"])
def test_json_that_is_not_an_answer_fails_at_once(provider: str, body: bytes) -> None:
    with recording(200, {"content-type": "application/json"}, body) as page:
        error = ask(ModelServer(provider=provider, base_url=page.url))

    assert len(page.seen) == 1
    assert "answered 200 with application/json, not with a stream of events" in error


def test_an_answer_of_another_kind_names_the_variable_of_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(200, {"content-type": "text/html"}, b"<html>") as page:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", page.url)
        assert ask(ModelServer()).endswith("check ANTHROPIC_BASE_URL")


@pytest.mark.parametrize(
    ("status", "path", "advice"),
    [
        (401, "", "check GPU_KEY"),
        (403, "", "check what GPU_KEY may use"),
        (404, "", "check [model] name and base_url"),
        (404, "/v1", "base_url, of which another form is {url}"),
    ],
)
def test_a_wrong_key_a_wrong_model_and_a_wrong_path_say_what_to_change(
    status: int, path: str, advice: str
) -> None:
    with recording(status) as server:
        error = ask(ModelServer(base_url=server.url + path, api_key_env="GPU_KEY"), {"GPU_KEY": "mine"})

    assert error.startswith(f"the model answered {status} invalid_request_error: no; ")
    assert error.endswith(advice.format(url=server.url))
    assert "mine" not in error


def closed_port() -> str:
    server = RecordingServer(200, {}, b"")
    server.server.server_close()
    return server.url


def test_a_port_that_nobody_listens_on_is_given_up_in_a_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fdstore.agents.loop.models.tries.ABSENT_S", 0.3)
    model = open_model(ModelServer(base_url=closed_port()))

    with pytest.raises(ModelFailed, match=r"could not be reached: .*; check base_url, tries: \d"):
        ClientUnderTest(model).query(is_first=True)
    model.close()


def test_a_port_that_nobody_listens_on_is_an_outage_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fdstore.agents.loop.models.tries.ABSENT_S", 0.0)
    model = open_model(ModelServer(base_url=closed_port()))

    with pytest.raises(ModelFailed, match="time ends before the next try"):
        ClientUnderTest(model).query(within_s=0.5)
    model.close()


def test_a_server_that_a_program_names_answers() -> None:
    with ScriptedModel([say("Hi.")]) as scripted:
        server = ModelServer(base_url=scripted.base_url, api_key_env="MINE")
        model: Any = open_model(server, {"MINE": scripted.api_key})
        assert ClientUnderTest(model).query().text == "Hi."
        model.close()

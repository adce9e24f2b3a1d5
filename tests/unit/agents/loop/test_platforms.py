"""Claude in Amazon Bedrock, Google Vertex AI and Microsoft Foundry: where requests go, how they sign in."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pytest
from anthropic.lib.aws._auth import _get_session

from fdstore.agents.loop.models import providers
from fdstore.agents.loop.models.base import ModelFailed
from fdstore.agents.loop.models.providers import lacking, missing, open_model
from fdstore.model.model_servers import ModelServer
from fdstore.model.providers import PROVIDERS
from fdstore.testing import ScriptedModel, say
from tests.recording_server import RecordingServer, recording
from tests.unit.agents.loop.model_client import ClientUnderTest

NO_ROLES = {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}
AWS = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "secret-aws"}
VERTEX = {"CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "ours"}
FOUNDRY = {"ANTHROPIC_FOUNDRY_API_KEY": "secret-foundry"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for row in PROVIDERS.values():
        for name in row.variables:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in {**NO_ROLES, **AWS, **VERTEX, **FOUNDRY}.items():
        monkeypatch.setenv(name, value)
    _get_session.cache_clear()


def ask(server: ModelServer, **more: Any) -> str:
    """Ask, and return the error."""
    model = open_model(server)
    try:
        with pytest.raises(ModelFailed) as failed:
            ClientUnderTest(model).query(within_s=3, **more)
        return str(failed.value)
    finally:
        model.close()


def frame(kind: str, payload: dict[str, Any]) -> bytes:
    """Return an event of the stream of Bedrock: AWS's binary form around an event of the Messages API."""
    chunk = json.dumps({"bytes": base64.b64encode(json.dumps(payload).encode()).decode()}).encode()
    headers = b""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    for name, value in named.items():
        headers += (
            struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        )
    prelude = struct.pack(">II", 16 + len(headers) + len(chunk), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + chunk
    return message + struct.pack(">I", zlib.crc32(message))


EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "any",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
STREAM = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in EVENTS).encode()


def answering(provider: str) -> Any:
    if provider == "bedrock":
        kind = {"content-type": "application/vnd.amazon.eventstream"}
        return recording(200, kind, b"".join(frame("chunk", each) for each in EVENTS))
    return recording(200, {"content-type": "text/event-stream"}, STREAM)


@pytest.mark.parametrize(
    ("provider", "path", "header"),
    [
        ("bedrock", "/model/any/invoke-with-response-stream", "authorization"),
        ("vertex", "/projects/ours/locations/europe-west1/publishers/anthropic/models/any:", "authorization"),
        ("foundry", "/v1/messages", "api-key"),
    ],
)
def test_a_platform_answers_with_its_own_sign_in(
    provider: str, path: str, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(provider) as server:
        monkeypatch.setenv(PROVIDERS[provider].url, server.url)
        model: Any = open_model(ModelServer(provider=provider))
        if provider == "vertex":
            model._client.access_token = "secret-google"  # in place of the files and servers of Google
        answer = ClientUnderTest(model).query()
        model.close()

    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("Hi.", 3, 2)
    assert server.paths[0].startswith(path)
    beginnings = {"bedrock": "AWS4-HMAC-SHA256 Credential=AKIAX/", "vertex": "Bearer secret-google"}
    assert server.seen[0][header].startswith(beginnings.get(provider, "secret-foundry"))


@pytest.mark.parametrize("provider", ["bedrock", "vertex", "foundry"])
def test_a_server_of_a_program_gets_no_sign_in_of_the_environment(provider: str) -> None:
    with recording() as thief:
        ask(ModelServer(provider=provider, base_url=thief.url))

    assert len(thief.seen) == 1
    assert "secret" not in thief.text
    assert "AKIAX" not in thief.text


@pytest.mark.parametrize("provider", ["bedrock", "vertex", "foundry"])
def test_a_server_of_a_program_gets_the_key_that_the_program_names(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "mine")
    with recording() as server:
        ask(ModelServer(provider=provider, base_url=server.url, api_key_env="GATEWAY_KEY"))

    assert server.seen[0]["authorization"] == "Bearer mine"
    assert "secret" not in server.text


@pytest.mark.parametrize(
    ("provider", "variable", "said"),
    [
        ("bedrock", "AWS_REGION", "it needs AWS_REGION or AWS_DEFAULT_REGION"),
        ("vertex", "CLOUD_ML_REGION", "it needs CLOUD_ML_REGION, ANTHROPIC_VERTEX_PROJECT_ID"),
        ("foundry", "ANTHROPIC_FOUNDRY_API_KEY", "no key for the Messages API in Microsoft Foundry: set"),
    ],
)
def test_what_a_platform_misses_is_told_without_a_request(
    provider: str, variable: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_FOUNDRY_RESOURCE", "ours")
    assert missing(ModelServer(provider=provider)) == ""

    monkeypatch.delenv(variable)

    assert said in missing(ModelServer(provider=provider))


def test_a_missing_package_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "is_installed", lambda package: package not in ("boto3", "google.auth"))

    assert 'the provider "bedrock" needs the package boto3; install it with' in lacking("bedrock")
    assert ".[vertex]" in missing(ModelServer(provider="vertex"))
    assert lacking("foundry") == ""
    with pytest.raises(ModelFailed, match="needs the package boto3"):
        open_model(ModelServer(provider="bedrock"))


def test_a_sign_in_without_credentials_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with recording() as server:
        monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_VERTEX_BASE_URL", server.url)
        bedrock, vertex = (ask(ModelServer(provider=each)) for each in ("bedrock", "vertex"))

    assert bedrock.startswith("cannot sign in to the Messages API in Amazon Bedrock: ")
    assert vertex.startswith("cannot sign in to the Messages API in Google Vertex AI: ")
    assert server.seen == []


@pytest.mark.parametrize("provider", ["bedrock", "vertex"])
def test_the_prompt_cache_is_marked_in_blocks_where_requests_take_no_mark(provider: str) -> None:
    with recording() as server:
        ask(ModelServer(provider=provider, base_url=server.url), prompt_cache="1h")

    body = json.loads(server.bodies[0])
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in body
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark


def test_foundry_marks_the_whole_request() -> None:
    with ScriptedModel([say("Hi.")]) as scripted, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINE", scripted.api_key)
        server = ModelServer(provider="foundry", base_url=scripted.base_url, api_key_env="MINE")
        model: Any = open_model(server)
        assert ClientUnderTest(model).query(prompt_cache=True).text == "Hi."
        model.close()

        assert scripted.requests[0].raw["cache_control"] == {"type": "ephemeral"}


def test_a_key_with_a_line_end_is_refused_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "secret\nkey")
    server = RecordingServer(200, {}, b"")
    monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", server.url)
    server.server.server_close()

    error = ask(ModelServer(provider="bedrock"))

    assert "has characters that cannot be sent" in error
    assert "secret" not in error

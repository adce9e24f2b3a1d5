"""Read settings from the environment. docs/reference/environment.md lists all variables.

FDSTORE_URL         the store: redis://, rediss://, unix://, sentinel://, redis+cluster:// (default: the
                    embedded server)
FDSTORE_BROKER_URL  the workers' queue (default: the same Redis; needed when that is a Cluster)
FDSTORE_DATA_DIR    the embedded server's files (default: fdstore/ under the XDG data home)
FDSTORE_PREFIX      prefix of every key (default: fdstore)
FDSTORE_REDIS_SERVER  the program of the embedded server (default: the newest Redis or Valkey found)
FDSTORE_MODEL, FDSTORE_ASK_MODEL  the model of the agent of `fdstore ask`, and of the questions of its code
FDSTORE_PRICES      what a million tokens of models cost, as "MODEL=INPUT,OUTPUT,CURRENCY ..."
XDG_RUNTIME_DIR     directory of a short link to the embedded server's socket, used if the data directory's
                    path is too long for a socket address (default: the temporary directory)
CLAUDE_CONFIG_DIR   where Claude Code keeps its files (default: ~/.claude); CODEX_HOME the same for Codex
FDSTORE_GATEWAY_HEADERS  headers that `fdstore gateway --http` sends to the server: a JSON object of strings
FDSTORE_GATEWAY_ENTRY    the entry of a host's configuration that `fdstore gateway --wrap` replaced, as JSON;
                    its "headers" are sent, too
FDSTORE_GATEWAY_SERVERS  with --code, all entries that it replaced, as JSON
FDSTORE_HTTP_CONNECTIONS  how many connections an HTTP server of ours has at most (256);
FDSTORE_HTTP_REQUEST_S    in how many seconds a client must have sent its request (30)
OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_PROTOCOL,
OTEL_EXPORTER_OTLP_ENDPOINT, the latter also with TRACES or METRICS: what a worker sends to OpenTelemetry,
                    whose SDK reads its other variables itself
NO_COLOR            if not empty, no colours, also on a terminal (like TERM=dumb)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.records import ModelPrice

DEFAULT_PREFIX = "fdstore"
DEMO_PREFIX = "fdstore-demo"
"""Of the demo's keys and queue, separate from all others in the same Redis."""

OWN_PREFIXES = (DEFAULT_PREFIX, DEMO_PREFIX)
"""The prefixes that fdstore itself uses: where trees may be that are not found under another one."""

MIN_REDIS_VERSION = (6, 2)
"""The oldest supported version of Redis."""


def queue_prefix(prefix: str) -> str:
    """Return the key prefix of the workers' queue for a store with key prefix `prefix`.

    >>> queue_prefix("fdstore")
    'fdq:fdstore:'
    """
    return f"fdq:{prefix}:"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings from the environment. `url` is None for the embedded server. The directories of coding hosts
    are where these keep their configuration."""

    url: str | None
    broker_url: str | None
    data_dir: Path
    prefix: str
    claude_dir: Path
    codex_dir: Path
    gemini_dir: Path
    runtime_dir: Path | None = None
    redis_server: Path | None = None
    gateway_headers: str | None = None
    gateway_entry: str | None = None
    gateway_servers: str | None = None
    colours: bool = True
    model: str | None = None
    ask_model: str | None = None
    prices: str = ""


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from `environ` (default: `os.environ`).

    >>> read({"HOME": "/home/ann"}).data_dir
    PosixPath('/home/ann/.local/share/fdstore')
    """
    env = os.environ if environ is None else environ
    home = Path(env.get("HOME") or Path.home())
    data_home = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share")
    return Settings(
        url=env.get("FDSTORE_URL") or None,
        broker_url=env.get("FDSTORE_BROKER_URL") or None,
        data_dir=Path(env.get("FDSTORE_DATA_DIR") or data_home / "fdstore"),
        prefix=env.get("FDSTORE_PREFIX") or DEFAULT_PREFIX,
        claude_dir=Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude"),
        codex_dir=Path(env.get("CODEX_HOME") or home / ".codex"),
        gemini_dir=home / ".gemini",
        runtime_dir=Path(env["XDG_RUNTIME_DIR"]) if env.get("XDG_RUNTIME_DIR") else None,
        redis_server=Path(env["FDSTORE_REDIS_SERVER"]) if env.get("FDSTORE_REDIS_SERVER") else None,
        gateway_headers=env.get("FDSTORE_GATEWAY_HEADERS") or None,
        gateway_entry=env.get("FDSTORE_GATEWAY_ENTRY") or None,
        gateway_servers=env.get("FDSTORE_GATEWAY_SERVERS") or None,
        colours=not env.get("NO_COLOR") and env.get("TERM") != "dumb",
        model=env.get("FDSTORE_MODEL") or None,
        ask_model=env.get("FDSTORE_ASK_MODEL") or None,
        prices=env.get("FDSTORE_PRICES", ""),
    )


def parse_prices(prices: str) -> dict[str, ModelPrice]:
    """Return what a million tokens of each model cost, by the value of FDSTORE_PRICES. Raises
    `InvalidArgument`.

    >>> parse_prices("claude-haiku-4-5=1,5,USD")["claude-haiku-4-5"]
    ModelPrice(input=1.0, output=5.0, cache_read=None, cache_write=None, currency='USD')
    """
    found: dict[str, ModelPrice] = {}
    for word in prices.split():
        model, _, values = word.rpartition("=")
        paid, _, rest = values.partition(",")
        got, _, currency = rest.partition(",")
        try:
            found[model] = ModelPrice(input=float(paid), output=float(got), currency=currency)
        except ValueError:
            found[""] = ModelPrice(input=0, output=0)
        if "" in found or not all(0 <= each <= 1e9 for each in (found[model].input, found[model].output)):
            problem = f"{quoted(word)} is not a price; write it as MODEL=INPUT,OUTPUT,CURRENCY"
            raise InvalidArgument("FDSTORE_PRICES", problem)
    return found


class OtelSettings(msgspec.Struct, frozen=True):
    """The exporters that the environment asks for ("" for none), and the protocol of `otlp`."""

    traces: str = ""
    metrics: str = ""
    protocol: str = "http"


def read_otel(environ: Mapping[str, str] | None = None) -> OtelSettings:
    """Read what is to be sent to OpenTelemetry.

    >>> read_otel({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318", "OTEL_METRICS_EXPORTER": "none"})
    OtelSettings(traces='otlp', metrics='', protocol='http')
    """
    env = os.environ if environ is None else environ
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return OtelSettings()

    def exporter(kind: str) -> str:
        named = env.get(f"OTEL_{kind}_EXPORTER", "").partition(",")[0].strip()
        endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{kind}_ENDPOINT")
        if not named and any(env.get(each) for each in endpoints):
            named = "otlp"
        return "" if named == "none" else named

    protocol = env.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf").partition("/")[0]
    return OtelSettings(exporter("TRACES"), exporter("METRICS"), protocol)


HOST_READ_CHARS = 45_000
"""The largest result of one read by a coding host, in characters: Claude Code writes an MCP result of more
than 50,000 characters to a file, as a single line."""

HOST_PATIENCE_S = 2.0
"""The time that one call of a host or an agent framework may take while the store does not answer, see
`connect(patience=...)`. The calls that follow cost nothing until the store is tried again."""


class HttpLimits(msgspec.Struct, frozen=True):
    """The limits of clients of an HTTP server.

    connections   at the same time, at most
    request_s     seconds in which a client must have sent its whole request
    """

    connections: int = 256
    request_s: float = 30.0


def read_http(environ: Mapping[str, str] | None = None) -> HttpLimits:
    """Read the limits of HTTP servers. Raises `InvalidArgument`.

    >>> read_http({"FDSTORE_HTTP_CONNECTIONS": "1000"})
    HttpLimits(connections=1000, request_s=30.0)
    """
    env = os.environ if environ is None else environ
    found: dict[str, float] = {}
    for field, number, what in (
        ("connections", int, "a count of 1 or more"),
        ("request_s", float, "seconds"),
    ):
        name = f"FDSTORE_HTTP_{field.upper()}"
        if text := env.get(name):
            try:
                found[field] = number(text)
            except ValueError:
                found[field] = 0
            if not 0 < found[field] < 1e9:
                raise InvalidArgument(name, f"{quoted(text)} is not {what}")
    return HttpLimits(**found)  # type: ignore[arg-type]

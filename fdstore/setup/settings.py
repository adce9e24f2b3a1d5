"""Read settings from the environment.

A setting is a field of `Settings` or `HttpLimits`, with its variable in its annotation: the page
docs/reference/environment.md has its rows from there. What a worker sends to OpenTelemetry is in `read_otel`,
since these variables are of the SDK, which reads others itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.fields import said_of
from fdstore.model.msgspec_types import prepare
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


class Variable(msgspec.Struct, frozen=True):
    """What is said of a variable: its section of the page, what it means, what holds without it (default: the
    default of its field), and what it must be, if that is checked. An empty variable counts as unset."""

    section: Literal["store", "models", "hosts", "http", "output"]
    name: str
    meaning: str
    without: str = ""
    must_be: str = ""


_store, _models, _hosts, _http, _output = (
    partial(Variable, section) for section in ("store", "models", "hosts", "http", "output")
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings from the environment. `url` is None for the embedded server. The directories of coding hosts
    are where these keep their configuration."""

    url: Annotated[
        str | None,
        _store(
            "FDSTORE_URL",
            "URL of the store: `redis://`, `rediss://`, `unix://`, `sentinel://`, `redis+cluster://`.",
            "the embedded server",
        ),
    ] = None
    prefix: Annotated[
        str,
        _store(
            "FDSTORE_PREFIX",
            "Prefix of all keys. Stores with different prefixes share a Redis without seeing each other.",
        ),
    ] = DEFAULT_PREFIX
    broker_url: Annotated[
        str | None,
        _store(
            "FDSTORE_BROKER_URL",
            "URL of the workers' queue. Required if the store is a Redis Cluster.",
            "the Redis of the store",
        ),
    ] = None
    data_dir: Annotated[
        Path,
        _store(
            "FDSTORE_DATA_DIR",
            "Directory of the embedded server, of the worker that `fdstore up` starts, and of what hooks"
            " remember of a store that is away.",
            "`fdstore` in `$XDG_DATA_HOME`",
        ),
    ]
    redis_server: Annotated[
        Path | None,
        _store(
            "FDSTORE_REDIS_SERVER",
            "Path of the program that the embedded server runs. By default the newest `redis-server` or"
            " `valkey-server`, 6.2 or later, on `PATH` or in the packages of fdstore.",
            "the newest Redis or Valkey found",
        ),
    ] = None
    data_home: Annotated[
        Path, _store("XDG_DATA_HOME", "Where `FDSTORE_DATA_DIR` is by default.", "`~/.local/share`")
    ]
    runtime_dir: Annotated[
        Path | None,
        _store(
            "XDG_RUNTIME_DIR",
            "Directory of a short link to the embedded server's socket, if the path of the socket is too long"
            " for the system.",
            "the temporary directory",
        ),
    ] = None
    home: Annotated[Path, _store("HOME", "Where the directories are by default.", "of the user")]
    model: Annotated[
        str | None,
        _models("FDSTORE_MODEL", "The model of the agent of `fdstore ask`.", "as `fdstore ask --help` says"),
    ] = None
    ask_model: Annotated[
        str | None,
        _models(
            "FDSTORE_ASK_MODEL", "The model that the questions of its programs go to.", "that of the agent"
        ),
    ] = None
    prices: Annotated[
        str,
        _models(
            "FDSTORE_PRICES",
            "What a million tokens cost, so that `fdstore ask` shows amounts: `MODEL=INPUT,OUTPUT,CURRENCY`,"
            " several separated by blanks, as `claude-sonnet-5-5=3,15,USD claude-haiku-4-5=1,5,USD`.",
        ),
    ] = ""
    allow_model_servers: Annotated[
        str,
        _models(
            "FDSTORE_ALLOW_MODEL_SERVERS",
            "What `fdstore worker --allow-model-server` allows, several separated by blanks: servers of"
            " models that programs may name, as `http://gpu1:8000=GPU_KEY`.",
            "none on a store by URL",
        ),
    ] = ""
    claude_dir: Annotated[
        Path, _hosts("CLAUDE_CONFIG_DIR", "Where Claude Code keeps its files.", "`~/.claude`")
    ]
    codex_dir: Annotated[Path, _hosts("CODEX_HOME", "Where Codex keeps its files.", "`~/.codex`")]
    gateway_headers: Annotated[
        str | None,
        _hosts(
            "FDSTORE_GATEWAY_HEADERS",
            "Headers that `fdstore gateway --http` sends: a JSON object of strings.",
        ),
    ] = None
    gateway_entry: Annotated[
        str | None,
        _hosts(
            "FDSTORE_GATEWAY_ENTRY",
            "Set by `fdstore gateway --wrap`: the entry of the host's configuration that it replaced, as"
            " JSON; its `headers` are sent, too.",
        ),
    ] = None
    gateway_servers: Annotated[
        str | None,
        _hosts(
            "FDSTORE_GATEWAY_SERVERS",
            "Set by `fdstore gateway --wrap --code`: all entries of the host's configuration that it"
            " replaced, as JSON.",
        ),
    ] = None
    no_color: Annotated[str, _output("NO_COLOR", "If not empty: no colours, on a terminal too.")] = ""
    terminal: Annotated[str, _output("TERM", "`dumb`: no colours.")] = ""

    @property
    def gemini_dir(self) -> Path:
        return self.home / ".gemini"

    @property
    def colours(self) -> bool:
        return not self.no_color and self.terminal != "dumb"


class HttpLimits(msgspec.Struct, frozen=True):
    """The limits of clients of an HTTP server: how many connections, and the seconds for a request."""

    connections: Annotated[
        int,
        msgspec.Meta(gt=0, lt=10**9),
        _http(
            "FDSTORE_HTTP_CONNECTIONS",
            "Connections of a server at the same time, at most; never more than a quarter of `ulimit -n`.",
            must_be="a count of 1 or more",
        ),
    ] = 256
    request_s: Annotated[
        float,
        msgspec.Meta(gt=0, lt=1e9),
        _http(
            "FDSTORE_HTTP_REQUEST_S",
            "In how many seconds a client must have sent its whole request.",
            must_be="seconds",
        ),
    ] = 30.0


VARIABLES = {kind: said_of(kind, Variable) for kind in (Settings, HttpLimits)}
"""The variables of the fields of each."""


MAX_PATH_BYTES, MAX_NAME_BYTES = 4095, 255
"""Of a path, and of each name in it, on Linux and macOS at most."""


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from `environ` (default: `os.environ`). Raises `InvalidArgument` for a data directory
    whose name is too long for any file system.

    >>> read({"HOME": "/home/ann"}).data_dir
    PosixPath('/home/ann/.local/share/fdstore')
    """
    env = os.environ if environ is None else environ
    given = {name: env[each.name] for name, each in VARIABLES[Settings].items() if env.get(each.name)}
    home = Path(given.get("home") or Path.home())
    data_home = Path(given.get("data_home") or home / ".local" / "share")
    directories = {
        "home": home,
        "data_home": data_home,
        "data_dir": data_home / "fdstore",
        "claude_dir": home / ".claude",
        "codex_dir": home / ".codex",
    }
    found = msgspec.convert(directories | given, Settings, dec_hook=lambda kind, value: kind(value))
    _check_length(found.data_dir)
    return found


def _check_length(directory: Path) -> None:
    if len(os.fsencode(directory)) > MAX_PATH_BYTES:
        problem = f"{quoted(str(directory))} is too long; a path has at most {MAX_PATH_BYTES} bytes"
    elif any(len(os.fsencode(name)) > MAX_NAME_BYTES for name in directory.parts):
        problem = f"{quoted(str(directory))} is too long; a name in it has at most {MAX_NAME_BYTES} bytes"
    else:
        return
    raise InvalidArgument("FDSTORE_DATA_DIR", problem)


prepare(Settings, HttpLimits)


def read_http(environ: Mapping[str, str] | None = None) -> HttpLimits:
    """Read the limits of HTTP servers. Raises `InvalidArgument`.

    >>> read_http({"FDSTORE_HTTP_CONNECTIONS": "1000"})
    HttpLimits(connections=1000, request_s=30.0)
    """
    env = os.environ if environ is None else environ
    found = HttpLimits()
    for field, variable in VARIABLES[HttpLimits].items():
        if text := env.get(variable.name):
            given = msgspec.structs.asdict(found) | {field: text}
            try:
                found = msgspec.convert(given, HttpLimits, strict=False)
            except msgspec.ValidationError as error:
                raise InvalidArgument(variable.name, f"{quoted(text)} is not {variable.must_be}") from error
    return found


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

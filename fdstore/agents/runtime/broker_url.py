"""The URL of the queue's broker: which one a store uses, and what its options mean."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.setup.url_options import (
    HOW_TO_QUOTE,
    UNREADABLE,
    check_database,
    check_login,
    check_options,
    cut_url,
    format_address,
    hide_password,
    parse_addresses,
    sentinel_login,
    split_url,
)

SENTINEL_TIMEOUT_S = 2.0
"""Time-out for connecting to a Sentinel and for its reply, before the next one is tried."""


class Broker(msgspec.Struct, frozen=True):
    """Address of the queue: the URL in kombu's form, which may contain a password, the transport options that
    a URL cannot express, and `shown`, the address without secrets for error messages. `tls`: TLS options that
    are not in the URL."""

    url: str
    shown: str
    options: dict[str, Any] = {}
    tls: dict[str, str] = {}


def find_broker(store_url: str, broker_url: str | None = None) -> Broker:
    """Return the broker at `broker_url`, else in the store's Redis.

    Accepts `redis://` and `rediss://` `[USER:PASSWORD@]HOST[:PORT][/DB]`, `unix:///PATH[?db=DB]` and
    `sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/MASTER[/DB]`, or
    `rediss+sentinel://` for TLS. The query may set `db`, `ssl_*`, `sentinel_username` and
    `sentinel_password`; certificates are verified unless `ssl_cert_reqs` says otherwise. Raises
    `InvalidArgument` for any other URL; a Redis Cluster cannot hold the queue.

    >>> find_broker("unix:///run/redis.sock?db=2").url
    'redis+socket:///run/redis.sock?virtual_host=2'
    """
    url = broker_url or store_url
    argument = "FDSTORE_BROKER_URL" if broker_url else "FDSTORE_URL"
    try:
        parts = split_url(url)
        query = dict(parse_qsl(parts.query))
        _check_query(parts, argument)
        match parts.scheme:
            case "redis" | "rediss" if parts.hostname:
                return _on_tcp(parts, query)
            case "unix" | "redis+socket" if parts.path.strip("/"):
                return _on_socket(parts, query)
            case "sentinel" | "rediss+sentinel" if parts.hostname and parts.path.strip("/"):
                return _behind_sentinels(parts, query)
    except ValueError:
        raise InvalidArgument(argument, HOW_TO_QUOTE) from None  # the error may quote the password
    raise InvalidArgument(
        argument,
        f"the workers' queue needs redis://, rediss://, unix://, sentinel:// or rediss+sentinel://, not "
        f"{quoted(f'{parts.scheme}://')}"
        "; set FDSTORE_BROKER_URL to a single Redis (a Cluster cannot hold the queue)",
    )


def _on_tcp(parts: SplitResult, query: dict[str, str]) -> Broker:
    tls = _tls_options(query) if parts.scheme == "rediss" else {}
    database = query.get("db") or parts.path.strip("/") or "0"
    where = f"{_host(parts)}:{parts.port or 6379}/{database}"
    options = f"?{urlencode(tls)}" if tls else ""
    url = f"{parts.scheme}://{_login(parts, query)}{where}{options}"
    return Broker(url, cut_url(f"{parts.scheme}://{where}"))


def _on_socket(parts: SplitResult, query: dict[str, str]) -> Broker:
    # kombu splits a URL at ";", so requote the path
    path = quote(unquote(parts.path))
    database = query.get("db") or query.get("virtual_host") or "0"
    return Broker(
        f"redis+socket://{_login(parts, query)}{path}?virtual_host={quote(database)}",
        cut_url(f"unix://{path}?db={quote(database)}"),
    )


def _behind_sentinels(parts: SplitResult, query: dict[str, str]) -> Broker:
    master, _, database = parts.path.strip("/").partition("/")
    database = query.get("db") or database or "0"
    sentinels = [format_address(address) for address in parse_addresses(parts, 26379)]
    login, _ = sentinel_login(parts)
    tls = _tls_options(query) if parts.scheme == "rediss+sentinel" else {}
    sentinel_options = {**login, **({"ssl": True, **tls} if tls else {})}
    timeouts = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), SENTINEL_TIMEOUT_S)
    return Broker(
        ";".join(f"sentinel://{_login(parts, query)}{sentinel}/{database}" for sentinel in sentinels),
        cut_url(f"{parts.scheme}://{','.join(sentinels)}/{master}/{database}"),
        {"master_name": unquote(master), "sentinel_kwargs": {**timeouts, **sentinel_options}},
        tls,
    )


def _check_query(parts: SplitResult, argument: str) -> None:
    try:
        check_login(parts)
        if parts.scheme != "redis+socket":
            check_options(parts)
        if parts.scheme in ("redis", "rediss"):
            check_database(parts.path.removeprefix("/") or "0")
    except ValueError as error:
        if hide_password(parts.geturl()) == UNREADABLE:
            raise  # the error may quote the password
        raise InvalidArgument(argument, str(error)) from None


def _tls_options(query: dict[str, str]) -> dict[str, str]:
    # without any ssl option kombu verifies no certificate
    options = {name: value for name, value in query.items() if name.startswith("ssl_")}
    return {"ssl_cert_reqs": "required", **options}


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


def _login(parts: SplitResult, query: dict[str, str]) -> str:
    # redis-py, which reads the store's URL, has the same order
    user = unquote(parts.username or "") or query.get("username", "")
    password = unquote(parts.password or "") or query.get("password", "")
    return f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""

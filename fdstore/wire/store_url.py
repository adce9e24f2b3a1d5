"""Parse the URL of a store and create connections to it.

    redis://HOST[:PORT][/DB]                 one Redis; rediss:// with TLS
    unix:///PATH[?db=DB]                     one Redis on this machine
    sentinel://HOST[:PORT],.../MASTER[/DB]   the current primary of MASTER, named by Sentinels;
                                             rediss+sentinel:// with TLS to Sentinels and primary
    redis+cluster://HOST[:PORT],...          a Redis Cluster, found through any of these nodes;
                                             rediss+cluster:// with TLS

USER:PASSWORD@ of Redis may precede the hosts; the options in `url_options.OPTIONS` may follow the path, e.g.
`?ssl_ca_certs=...` (with TLS). A separate login of the Sentinels is given there too: `sentinel_username`,
`sentinel_password`. The queue of the workers uses the same forms for Sentinels. Other options of redis-py's
URLs (time-outs, the protocol, decoding) are refused: fdstore sets them.

Connections through Sentinels ask them for the primary each time they connect, so after a failover the next
attempt goes to the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, unquote

import msgspec
import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
from redis.connection import parse_url

from fdstore.errors import InvalidArgument, quoted
from fdstore.setup.url_options import (
    HOW_TO_QUOTE,
    UNREADABLE,
    Address,
    check_database,
    check_login,
    check_options,
    cut_url,
    format_address,
    parse_addresses,
    refused_url,
    sentinel_login,
    shown_url,
    split_url,
)
from fdstore.wire.connection_options import CONNECT_TIMEOUT_S, UNNAMED, connection_options
from fdstore.wire.redis_errors import translate
from fdstore.wire.tls_hints import check_files

FORMS = "redis://, rediss://, unix://, sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://"


class StoreUrl(msgspec.Struct, frozen=True):
    """The parsed URL of a store: `shown` is the URL without the password, `url` redis-py's form of it for one
    host, `hosts` the Sentinels or Cluster nodes that it names, `sentinel_login` the Sentinels' login."""

    kind: Literal["redis", "sentinel", "cluster"]
    shown: str
    url: str
    hosts: tuple[Address, ...] = ()
    master: str = ""
    sentinel_login: dict[str, str] = {}

    @property
    def described(self) -> str:
        """A description of the kind of store, for people."""
        match self.kind:
            case "sentinel":
                return f"the Redis that Sentinels call {self.master}"
            case "cluster":
                return "a Redis Cluster"
        return "one Redis"

    @property
    def options(self) -> dict[str, Any]:
        """The options of every connection."""
        return {**connection_options(), **_parse_options(self.url)}


def parse_store_url(url: str) -> StoreUrl:
    """Parse a URL. Raises `InvalidArgument`.

    >>> parse_store_url("redis+cluster://:secret@a:7000,b:7001").hosts
    (('a', 7000), ('b', 7001))
    """
    if not isinstance(url, str):
        raise InvalidArgument("url", f"a str is needed, not {quoted(url)}")
    shown = shown_url(url)
    try:
        parts = split_url(url)
        check_login(parts)
        check_options(parts)
        place = _read(parts, shown, url)
        _try_options(place)
    except (ValueError, redis.RedisError) as error:
        if shown == UNREADABLE:
            raise InvalidArgument("url", HOW_TO_QUOTE) from None  # the error may quote the password
        raise InvalidArgument("url", f"{refused_url(url)}: {error}") from None
    return place


def _try_options(place: StoreUrl) -> None:
    """Construct a connection object, without connecting, so that redis-py validates every option."""
    try:
        options = _parse_options(place.url)
        connection_class = options.pop("connection_class", redis.Connection)
        connection_class(**{**options, **UNNAMED})  # for its name redis-py would read its package's metadata
    # TypeError: an option that this version of redis-py does not have
    except (TypeError, ValueError, redis.RedisError) as error:
        raise ValueError(cut_url(str(error))) from None


def _parse_options(url: str, parse: Callable[[str], Any] = parse_url) -> dict[str, Any]:
    """Parse a URL as redis-py does. Before version 8 it leaves `ssl_min_version` a string."""
    options: dict[str, Any] = parse(url)
    if "ssl_min_version" in options:
        try:
            options["ssl_min_version"] = int(options["ssl_min_version"])
        except ValueError:
            raise ValueError("Invalid value for 'ssl_min_version' in connection URL.") from None
    return options


def _read(parts: SplitResult, shown: str, url: str) -> StoreUrl:
    match parts.scheme:
        case "redis" | "rediss":
            check_database(parts.path.removeprefix("/") or "0")
            return StoreUrl("redis", shown, url)
        case "unix":
            return StoreUrl("redis", shown, url)
        case "redis+cluster" | "rediss+cluster":
            if parts.path.strip("/") not in ("", "0") or dict(parse_qsl(parts.query)).get("db", "0") != "0":
                raise ValueError("a Cluster has no database but 0")
            hosts = parse_addresses(parts, 6379)
            return StoreUrl("cluster", shown, _of_one(parts, hosts[0], "/0"), tuple(hosts))
        case "sentinel" | "rediss+sentinel":
            master, _, database = parts.path.strip("/").partition("/")
            if not master:
                raise ValueError("name the primary to ask the Sentinels for: sentinel://HOST/MASTER")
            hosts = parse_addresses(parts, 26379)
            login, rest = sentinel_login(parts)
            check_database(database or "0")
            at = _of_one(rest, hosts[0], f"/{database}")
            return StoreUrl("sentinel", shown, at, tuple(hosts), unquote(master), login)
    raise ValueError(f"a store's URL begins with {FORMS}")


def _of_one(parts: SplitResult, host: Address, path: str) -> str:
    login, at, _ = parts.netloc.rpartition("@")
    scheme = "rediss" if parts.scheme.startswith("rediss") else "redis"
    return parts._replace(scheme=scheme, netloc=f"{login}{at}{format_address(host)}", path=path).geturl()


# --- connections


def make_pool(place: StoreUrl, patience_s: float | None = None) -> redis.ConnectionPool:
    """Return the pool that creates a blocking client's connections; for a Cluster, to its first host. With
    patience, the Sentinels that are asked in turn share it. Raises `InvalidArgument` if a file for TLS is
    missing."""
    check_files(place.options)
    if place.kind != "sentinel":
        return redis.ConnectionPool(**place.options)
    sentinels = redis.sentinel.Sentinel(place.hosts, sentinel_kwargs=_sentinel_options(place, patience_s))
    connection_class = _TlsPrimaryConnection if _is_tls(place) else _PrimaryConnection
    return _PrimaryPool(place.master, sentinels, **{**place.options, "connection_class": connection_class})


def make_async_pool(place: StoreUrl, patience_s: float | None = None) -> redis.asyncio.ConnectionPool:
    """Return the pool that creates an asyncio client's connections, as `make_pool`."""
    check_files(place.options)
    if place.kind != "sentinel":
        options = _parse_options(place.url, redis.asyncio.connection.parse_url)
        return redis.asyncio.ConnectionPool(**{**connection_options(), **options})
    options = _sentinel_options(place, patience_s)
    sentinels = redis.asyncio.sentinel.Sentinel(list(place.hosts), sentinel_kwargs=options)
    connection_class = _AsyncTlsPrimaryConnection if _is_tls(place) else _AsyncPrimaryConnection
    options = {**place.options, "connection_class": connection_class}
    return _AsyncPrimaryPool(place.master, sentinels, **options)


def _is_tls(place: StoreUrl) -> bool:
    return place.url.startswith("rediss://")


def _sentinel_options(place: StoreUrl, patience_s: float | None) -> dict[str, Any]:
    # short time-outs: if one Sentinel is down, the next one is asked
    options = place.options
    wait_s = CONNECT_TIMEOUT_S
    if patience_s is not None:
        wait_s = min(wait_s, patience_s / (len(place.hosts) + 1))
    timeouts = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), wait_s)
    tls = {name: value for name, value in options.items() if name.startswith("ssl_")}
    return {
        "retry": options["retry"],
        "protocol": options["protocol"],
        "ssl": _is_tls(place),
        **tls,
        **timeouts,
        **place.sentinel_login,
    }


def _unknown_primary(master: str, error: Exception) -> redis.ConnectionError:
    # redis-py's message is very long; it names the error class for each Sentinel
    if "AuthenticationError" in str(error):
        login = "?sentinel_username=...&sentinel_password=..."
        return redis.AuthenticationError(f"a Sentinel refused the login of {login}")
    return redis.ConnectionError(f"no reachable Sentinel knows a primary called {master!r}")


class _PrimaryConnection(redis.sentinel.SentinelManagedConnection):
    """A connection to the current primary, with a short error if no Sentinel knows it."""

    def connect(self) -> None:
        try:
            super().connect()
        except redis.sentinel.MasterNotFoundError as error:
            raise _unknown_primary(self.connection_pool.service_name, error) from error


class _TlsPrimaryConnection(_PrimaryConnection, redis.SSLConnection):
    """The same with TLS."""


class _AsyncPrimaryConnection(redis.asyncio.sentinel.SentinelManagedConnection):
    """The same for asyncio. redis-py asks the Sentinels only in `connect`, not when a send reconnects."""

    async def connect(self) -> None:
        try:
            await super().connect()
        except redis.asyncio.sentinel.MasterNotFoundError as error:
            raise _unknown_primary(self.connection_pool.service_name, error) from error

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if not self.is_connected:
            await self.connect()
        await super().send_packed_command(command, check_health)


class _AsyncTlsPrimaryConnection(_AsyncPrimaryConnection, redis.asyncio.SSLConnection):
    """The same with TLS."""


class _PrimaryPool(redis.sentinel.SentinelConnectionPool):
    """A pool that also closes its connections to the Sentinels."""

    def close(self) -> None:
        super().close()
        for sentinel in self.sentinel_manager.sentinels:
            sentinel.close()


class _AsyncPrimaryPool(redis.asyncio.sentinel.SentinelConnectionPool):
    """The same for asyncio."""

    async def aclose(self) -> None:
        await super().aclose()
        for sentinel in self.sentinel_manager.sentinels:
            await sentinel.aclose()


# --- redis-cli


def redis_cli_options(place: StoreUrl) -> tuple[list[str], str | None]:
    """Return the options with which redis-cli connects to a store, and the password, to pass in the
    environment. With Sentinels, connect to the current primary. Raises `StoreUnavailable`.

    >>> redis_cli_options(parse_store_url("redis://ann:secret@db.example/2"))
    (['-h', 'db.example', '-p', '6379', '-n', '2', '--user', 'ann'], 'secret')
    """
    options = place.options
    words = ["-s", options["path"]] if "path" in options else _address_words(place)
    if options.get("db"):
        words += ["-n", str(options["db"])]
    if options.get("username"):
        words += ["--user", options["username"]]
    if _is_tls(place):
        words.append("--tls")
        for ours, theirs in _TLS_WORDS.items():
            if options.get(ours):
                words += [theirs, str(options[ours])]
        if options.get("ssl_cert_reqs") == "none":
            words.append("--insecure")
    if place.kind == "cluster":
        words.append("-c")
    return words, options.get("password")


_TLS_WORDS = {
    "ssl_ca_certs": "--cacert",
    "ssl_ca_path": "--cacertdir",
    "ssl_certfile": "--cert",
    "ssl_keyfile": "--key",
}


def _address_words(place: StoreUrl) -> list[str]:
    if place.kind != "sentinel":
        host, port = place.options.get("host", "localhost"), place.options.get("port", 6379)
        return ["-h", host, "-p", str(port)]
    pool: Any = make_pool(place)
    try:
        host, port = pool.get_master_address()
    except redis.RedisError as error:
        raise translate(_unknown_primary(place.master, error), place.shown) from error
    finally:
        pool.close()
    return ["-h", str(host), "-p", str(port)]

"""Where a store is: what the forms of its URL mean, and how connections to it are made.

    redis://HOST[:PORT][/DB]                 one Redis; rediss:// with TLS
    unix:///PATH[?db=DB]                     one Redis on this machine
    sentinel://HOST[:PORT],.../MASTER[/DB]   the Redis that Sentinels call MASTER, whichever it is now;
                                             rediss+sentinel:// with TLS to them and to it
    redis+cluster://HOST[:PORT],...          a Redis Cluster, found through any of these nodes;
                                             rediss+cluster:// with TLS

Before the hosts may stand USER:PASSWORD@ of Redis, after the path the options that `urls.OPTIONS` names, as
`?ssl_ca_certs=...` (with TLS). Sentinels with a login of their own have it there: `sentinel_username`,
`sentinel_password`. The forms with Sentinels are those of the workers' queue (see `dispatch`). What else
redis-py takes in a URL (time-outs, the protocol, decoding) is chosen by fdstore, and refused.

Connections to a primary that Sentinels name ask them anew whenever they connect, so after a failover
the next try goes to the new one.
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec
import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
from redis.connection import parse_url

from fdstore.errors import InvalidArgument, quoted
from fdstore.urls import (
    HOW_TO_QUOTE,
    UNREADABLE,
    Address,
    check_database,
    check_options,
    join_addresses,
    parse_addresses,
    sentinel_login,
    shown_url,
)
from fdstore.wire.retry import CONNECT_TIMEOUT_S, connection_options, translate

FORMS = "redis://, rediss://, unix://, sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://"


class StoreUrl(msgspec.Struct, frozen=True):
    """One store: `shown` is its URL without the password, `url` the same for one host in redis-py's
    form, `hosts` the Sentinels or the nodes of a Cluster that it names, `sentinel_login` what Sentinels
    want to know first."""

    kind: Literal["redis", "sentinel", "cluster"]
    shown: str
    url: str
    hosts: tuple[Address, ...] = ()
    master: str = ""
    sentinel_login: dict[str, str] = {}

    @property
    def described(self) -> str:
        """What kind of store it is, for people."""
        match self.kind:
            case "sentinel":
                return f"the Redis that Sentinels call {self.master}"
            case "cluster":
                return "a Redis Cluster"
        return "one Redis"

    @property
    def options(self) -> dict[str, Any]:
        """What every connection is made with."""
        return {**connection_options(), **parse_url(self.url)}


def parse_store_url(url: str) -> StoreUrl:
    """What a URL means. Raises `InvalidArgument`.

    >>> parse_store_url("redis+cluster://:secret@a:7000,b:7001").hosts
    (('a', 7000), ('b', 7001))
    """
    if not isinstance(url, str):
        raise InvalidArgument("url", f"a str is needed, not {quoted(url)}")
    shown = shown_url(url)
    try:
        parts = urlsplit(url)
        check_options(parts)
        place = _read(parts, shown, url)
        _try_options(place)
    except (ValueError, redis.RedisError) as error:
        if shown == UNREADABLE:
            raise InvalidArgument("url", HOW_TO_QUOTE) from None  # the error may quote the password
        raise InvalidArgument("url", f"{shown!r}: {error}") from error
    return place


def _try_options(place: StoreUrl) -> None:
    """Make a connection object, which connects to nothing, so that every value was read by redis-py."""
    options = parse_url(place.url)
    made_by = options.pop("connection_class", redis.Connection)
    made_by(**options)


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
                raise ValueError("say which Redis the Sentinels are asked for: sentinel://HOST/MASTER")
            hosts = parse_addresses(parts, 26379)
            login, rest = sentinel_login(parts)
            check_database(database or "0")
            at = _of_one(rest, hosts[0], f"/{database}")
            return StoreUrl("sentinel", shown, at, tuple(hosts), unquote(master), login)
    raise ValueError(f"a store's URL begins with {FORMS}")


def _of_one(parts: SplitResult, host: Address, path: str) -> str:
    login, at, _ = parts.netloc.rpartition("@")
    scheme = "rediss" if parts.scheme.startswith("rediss") else "redis"
    return parts._replace(scheme=scheme, netloc=f"{login}{at}{join_addresses(host)}", path=path).geturl()


# --- connections


def make_pool(place: StoreUrl) -> redis.ConnectionPool:
    """What makes the connections of a blocking client; of a Cluster, those to its first host."""
    if place.kind != "sentinel":
        return redis.ConnectionPool.from_url(place.url, **connection_options())
    sentinels = redis.sentinel.Sentinel(place.hosts, sentinel_kwargs=_asking_options(place))
    made_by = _TlsPrimaryConnection if _is_tls(place) else _PrimaryConnection
    return _PrimaryPool(place.master, sentinels, **{**place.options, "connection_class": made_by})


def make_async_pool(place: StoreUrl) -> redis.asyncio.ConnectionPool:
    """The same for an awaiting client."""
    if place.kind != "sentinel":
        return redis.asyncio.ConnectionPool.from_url(place.url, **connection_options())
    sentinels = redis.asyncio.sentinel.Sentinel(list(place.hosts), sentinel_kwargs=_asking_options(place))
    made_by = _AsyncTlsPrimaryConnection if _is_tls(place) else _AsyncPrimaryConnection
    return _AsyncPrimaryPool(place.master, sentinels, **{**place.options, "connection_class": made_by})


def _is_tls(place: StoreUrl) -> bool:
    return place.url.startswith("rediss://")


def _asking_options(place: StoreUrl) -> dict[str, Any]:
    # a Sentinel that is gone is no reason to wait long: the next one is asked
    given = place.options
    timeouts = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), CONNECT_TIMEOUT_S)
    tls = {name: value for name, value in given.items() if name.startswith("ssl_")}
    return {
        "retry": given["retry"],
        "protocol": given["protocol"],
        "ssl": _is_tls(place),
        **tls,
        **timeouts,
        **place.sentinel_login,
    }


def _nobody_knows(master: str, error: Exception) -> redis.ConnectionError:
    # redis-py's own words go on for pages, and name the class of what each Sentinel said
    if "AuthenticationError" in str(error):
        login = "?sentinel_username=...&sentinel_password=..."
        return redis.AuthenticationError(f"a Sentinel wants another login than {login} says")
    return redis.ConnectionError(f"no Sentinel that answers knows a primary called {master!r}")


class _PrimaryConnection(redis.sentinel.SentinelManagedConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except redis.sentinel.MasterNotFoundError as error:
            raise _nobody_knows(self.connection_pool.service_name, error) from error


class _TlsPrimaryConnection(_PrimaryConnection, redis.SSLConnection):
    """The same with TLS."""


class _AsyncPrimaryConnection(redis.asyncio.sentinel.SentinelManagedConnection):
    """redis-py asks the Sentinels in `connect` alone, and not when a connection connects as it sends."""

    async def connect(self) -> None:
        try:
            await super().connect()
        except redis.asyncio.sentinel.MasterNotFoundError as error:
            raise _nobody_knows(self.connection_pool.service_name, error) from error

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if not self.is_connected:
            await self.connect()
        await super().send_packed_command(command, check_health)


class _AsyncTlsPrimaryConnection(_AsyncPrimaryConnection, redis.asyncio.SSLConnection):
    """The same with TLS."""


class _PrimaryPool(redis.sentinel.SentinelConnectionPool):
    """Closes the connections to the Sentinels, too."""

    def close(self) -> None:
        super().close()
        for sentinel in self.sentinel_manager.sentinels:
            sentinel.close()


class _AsyncPrimaryPool(redis.asyncio.sentinel.SentinelConnectionPool):
    async def aclose(self) -> None:
        await super().aclose()
        for sentinel in self.sentinel_manager.sentinels:
            await sentinel.aclose()


# --- for people with redis-cli


def redis_cli_options(place: StoreUrl) -> tuple[list[str], str | None]:
    """Return the options that tell redis-cli where a store is and who asks, and the password, which belongs
    into its environment. Of Sentinels, the primary that they name now. Raises `StoreUnavailable`.

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
        raise translate(_nobody_knows(place.master, error), place.shown) from error
    finally:
        pool.close()
    return ["-h", str(host), "-p", str(port)]

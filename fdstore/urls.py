"""URLs of Redis: the hosts that one names, and how it is shown.

    redis+cluster://ann:secret@a.example:7000,b.example,[::1]:7002/0

Sentinels and the nodes of a Cluster are several hosts with commas between them; `urllib` knows one. A
password must not be shown, also when the URL is written so badly that it is not where it belongs.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

Address = tuple[str, int]
"""Host and port."""


def parse_addresses(parts: SplitResult, default_port: int) -> list[Address]:
    """The hosts between the login and the path. Raises ValueError for a port that is none.

    >>> from urllib.parse import urlsplit
    >>> parse_addresses(urlsplit("sentinel://ann:secret@a:1,b,[::1]:3/main"), 26379)
    [('a', 1), ('b', 26379), ('::1', 3)]
    """
    return [_address(one, default_port) for one in parts.netloc.rpartition("@")[2].split(",")]


def join_addresses(address: Address) -> str:
    """An address as it is written in a URL.

    >>> join_addresses(("::1", 7000))
    '[::1]:7000'
    """
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


UNREADABLE = "the URL given"
"""What is shown of a URL in which a password could not be found."""

HOW_TO_QUOTE = (
    "it cannot be read; write it SCHEME://USER:PASSWORD@HOST:PORT, and in a password %2F for /, %3F for ?"
)


def shown_url(url: str) -> str:
    """`url` without its password.

    >>> shown_url("redis://ann:secret@db.example/0"), shown_url("redis://:sec/ret@db.example")
    ('redis://ann:***@db.example/0', 'the URL given')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return UNREADABLE
    if parts.scheme != "unix" and "@" in parts.path + parts.query + parts.fragment:
        return UNREADABLE  # the password holds a character that ends a host
    shown = parts._replace(query=re.sub(r"((?:^|&)(?:\w+_)?password=)[^&]*", r"\1***", parts.query))
    if parts.password is not None:
        host = parts.netloc.rpartition("@")[2]
        shown = shown._replace(netloc=f"{parts.username or ''}:***@{host}")
    return url if shown == parts else shown.geturl()


TLS_OPTIONS = frozenset(
    {
        *(
            "ssl_ca_certs",
            "ssl_ca_data",
            "ssl_ca_path",
            "ssl_cert_reqs",
            "ssl_certfile",
            "ssl_check_hostname",
        ),
        *("ssl_ciphers", "ssl_exclude_verify_flags", "ssl_include_verify_flags", "ssl_keyfile"),
        *("ssl_min_version", "ssl_password"),
    }
)
SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
OPTIONS = frozenset({"db", "username", "password", "client_name"}) | TLS_OPTIONS | SENTINEL_OPTIONS
"""What the query of a URL may hold."""


def check_options(parts: SplitResult) -> None:
    """Check the options in a URL's query. Raises ValueError that names the first one that is not taken.

    >>> check_options(urlsplit("redis://a?ssl_ca_certs=ca.crt"))
    Traceback (most recent call last):
    ValueError: the option 'ssl_ca_certs' is for TLS: begin the URL with rediss
    """
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in OPTIONS:
            known = ", ".join(sorted(OPTIONS - TLS_OPTIONS - SENTINEL_OPTIONS))
            raise ValueError(f"the option {name!r} is not taken; taken are {known}, and ssl_... with TLS")
        if name in TLS_OPTIONS and not parts.scheme.startswith("rediss"):
            raise ValueError(f"the option {name!r} is for TLS: begin the URL with rediss")
        if name in SENTINEL_OPTIONS and not parts.scheme.endswith("sentinel"):
            raise ValueError(f"the option {name!r} is for sentinel://")
        if name == "db":
            check_database(value)


def check_database(name: str) -> None:
    """Check the number of a database, as a URL has it. Raises ValueError."""
    if not (name.isascii() and name.isdigit()):
        raise ValueError(f"a database is a number, as in redis://HOST:PORT/0, not {name!r}")


def has_password(url: str) -> bool:
    """Whether there is something in `url` that must not be shown.

    >>> has_password("redis://ann:secret@db.example"), has_password("redis://db.example/0")
    (True, False)
    """
    shown = shown_url(url)
    return shown != url and (shown != UNREADABLE or "@" in url)


def sentinel_login(parts: SplitResult) -> tuple[dict[str, str], SplitResult]:
    """What Sentinels want to know first, out of the query; and the URL without it.

    >>> login, rest = sentinel_login(urlsplit("sentinel://a/main?sentinel_password=x&ssl_ca_certs=ca.crt"))
    >>> login, rest.query
    ({'password': 'x'}, 'ssl_ca_certs=ca.crt')
    """
    names = {"sentinel_username": "username", "sentinel_password": "password"}
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    login = {names[name]: value for name, value in pairs if name in names}
    rest = urlencode([pair for pair in pairs if pair[0] not in names])
    return login, parts._replace(query=rest)


def _address(written: str, default_port: int) -> Address:
    host, colon, port = written.rpartition(":")
    if not colon or "]" in port:
        host, port = written, str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    host.encode("idna")  # what the resolver would fail at
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{written!r} is no host with a port")
    return host, int(port)

"""Redis URLs: parse their hosts and options, and hide their passwords.

    redis+cluster://ann:secret@a.example:7000,b.example,[::1]:7002/0

Sentinels and the nodes of a Cluster are several hosts separated by commas; `urllib` supports one. A password
must never be shown, not even that of a malformed URL, where it may be in the wrong place.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote_plus, urlencode, urlsplit

from fdstore.errors import quoted

Address = tuple[str, int]
"""Host and port."""


def split_url(url: str) -> SplitResult:
    """Split a URL as `urlsplit`; some versions of Python refuse lists of hosts with an IPv6 address there.

    >>> split_url("sentinel://b,[::1]:3/main").netloc
    'b,[::1]:3'
    """
    scheme, _, rest = url.partition("://")
    netloc = re.split("[/?#]", rest, maxsplit=1)[0]
    hosts = netloc.rpartition("@")[2]
    if "," not in hosts or "[" not in hosts or netloc.count("[") != netloc.count("]"):
        return urlsplit(url)
    parts = urlsplit(f"{scheme}://{netloc.translate(_WITHOUT_BRACKETS)}{rest[len(netloc) :]}")
    return parts._replace(netloc=netloc)


_WITHOUT_BRACKETS = str.maketrans("[]", "--")


def parse_addresses(parts: SplitResult, default_port: int) -> list[Address]:
    """Parse the hosts between the login and the path. Raises `ValueError` for an invalid port.

    >>> parse_addresses(split_url("sentinel://ann:secret@a:1,b,[::1]:3/main"), 26379)
    [('a', 1), ('b', 26379), ('::1', 3)]
    """
    return [_address(one, default_port) for one in parts.netloc.rpartition("@")[2].split(",")]


def format_address(address: Address) -> str:
    """Format an address for a URL.

    >>> format_address(("::1", 7000))
    '[::1]:7000'
    """
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


UNREADABLE = "the URL given"
"""Shown in place of a URL whose password cannot be located."""

HOW_TO_QUOTE = (
    "it cannot be read; write it SCHEME://USER:PASSWORD@HOST:PORT, and in a password %2F for /, %3F for ?"
)


def hide_password(url: str) -> str:
    """Return `url` for display: every place where its password may be is `***`.

    That includes a user without a password, since a password alone is easily written there.

    >>> hide_password("redis://ann:secret@db.example/0"), hide_password("redis://secret@db.example")
    ('redis://ann:***@db.example/0', 'redis://***@db.example')
    >>> hide_password("redis://:sec/ret@db.example")
    'the URL given'
    """
    try:
        parts = split_url(url)
    except ValueError:
        return UNREADABLE
    if parts.scheme != "unix" and "@" in parts.path + parts.query + parts.fragment:
        return UNREADABLE  # the password contains a character that ends the host
    login, at, hosts = parts.netloc.rpartition("@")
    if any(map(_has_odd_port, hosts.split(","))):
        return UNREADABLE  # USER:PASSWORD without a host
    names = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    secret = {name for name in names if name.endswith("password")}
    if not parts.password and "password" not in names:
        login = "***" if login.strip(":") else login
        secret.add("username")
    elif parts.password is not None:
        login = f"{parts.username or ''}:***"
    if "sentinel_password" not in names:
        secret.add("sentinel_username")
    query = "&".join(_hide_value(option, secret) for option in parts.query.split("&"))
    fragment = "***" if parts.fragment else ""  # it means nothing here
    shown = parts._replace(netloc=f"{login}{at}{hosts}", query=query, fragment=fragment)
    return url if shown == parts else shown.geturl()


SHOWN_CHARS = 500
"""The most that is shown of a URL."""


def shown_url(url: str) -> str:
    """Return a URL as messages name the place: without its password, and cut if it is very long."""
    return cut_url(hide_password(url))


def cut_url(shown: str) -> str:
    """Return the begin of what is shown of a very long URL."""
    return shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}..."


def refused_url(url: str) -> str:
    """Return a URL that is refused, for the error: without the login and the values of unknown options. What
    is wrong may be the name of the option that has the password.

    >>> refused_url("redis://ann:secret@db.example/0?passwd=secret")
    "'redis://***@db.example/0?passwd=***'"
    """
    shown = hide_password(url)
    if shown == UNREADABLE:
        return UNREADABLE
    parts = split_url(shown)
    login, at, hosts = parts.netloc.rpartition("@")
    options = [option.partition("=") for option in parts.query.split("&") if option]
    query = "&".join(
        f"{name}={value if unquote_plus(name) in OPTIONS else '***'}" for name, _, value in options
    )
    netloc = f"{'***' if login else ''}{at}{hosts}"
    return quoted(parts._replace(netloc=netloc, query=query).geturl(), SHOWN_CHARS)


def _has_odd_port(host: str) -> bool:
    _, colon, port = host.rpartition("]")[2].rpartition(":")
    return bool(colon and port) and not port.isdigit()


def _hide_value(option: str, secret: set[str]) -> str:
    name, equals, value = option.partition("=")
    return f"{name}{equals}***" if value and unquote_plus(name) in secret else option


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
TLS_VERSIONS = {"769": "TLS 1.0", "770": "TLS 1.1", "771": "TLS 1.2", "772": "TLS 1.3"}
"""The values of `ssl_min_version`, and which version each is."""

SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
OPTIONS = frozenset({"db", "username", "password", "client_name"}) | TLS_OPTIONS | SENTINEL_OPTIONS
"""Options that the query of a URL may contain."""


_PLAIN = re.compile(
    r"rediss?://(?:[\w.~-]*:[\w.~-]+@)?[a-z0-9][a-z0-9-]{0,40}(?:\.[a-z0-9][a-z0-9-]{0,40}){0,4}"
    r"(?::(?:[1-9]\d{0,3}|[1-5]\d{4}))?(?:/\d?)?"
    r"|unix:///[\w.-][\w./-]*",
    re.ASCII,
)


def is_plain(url: str) -> bool:
    """Return whether a URL is one that every parser takes, with a host and little else: others need redis-py,
    whose import takes longer than a small command.

    >>> is_plain("redis://:secret@db.example:6379/0"), is_plain("redis://db.example?db=x")
    (True, False)
    """
    return _PLAIN.fullmatch(url) is not None


def check_options(parts: SplitResult) -> None:
    """Check the options in a URL's query. Raises `ValueError` for the first one that is not supported.

    >>> check_options(urlsplit("redis://a?ssl_ca_certs=ca.crt"))
    Traceback (most recent call last):
    ValueError: the option 'ssl_ca_certs' is for TLS: begin the URL with rediss
    """
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in OPTIONS:
            known = ", ".join(sorted(OPTIONS - TLS_OPTIONS - SENTINEL_OPTIONS))
            raise ValueError(f"the option {quoted(name)} is unknown; known are {known}, and ssl_... with TLS")
        if name in TLS_OPTIONS and not parts.scheme.startswith("rediss"):
            raise ValueError(f"the option {name!r} is for TLS: begin the URL with rediss")
        if name in SENTINEL_OPTIONS and not parts.scheme.endswith("sentinel"):
            raise ValueError(f"the option {name!r} is for sentinel://")
        if name == "db":
            check_database(value)
        if name == "ssl_min_version" and value not in TLS_VERSIONS:
            known = ", ".join(f"{number} ({version})" for number, version in TLS_VERSIONS.items())
            raise ValueError(f"the option 'ssl_min_version' is a number of TLS: {known}")
    named = dict(parse_qsl(parts.query))
    if "ssl_keyfile" in named and "ssl_certfile" not in named:
        raise ValueError("the option 'ssl_keyfile' is the key of a certificate: name that with ssl_certfile")


def check_login(parts: SplitResult) -> None:
    """Check that a URL has a password for each user: a user alone may be a password in the wrong place.
    Raises `ValueError`, which does not quote it.

    >>> check_login(urlsplit("redis://secret@db.example"))
    Traceback (most recent call last):
    ValueError: the login has no password: write :PASSWORD@ before the host, or USER:PASSWORD@
    """
    names = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    has_user = bool(parts.username) or "username" in names
    has_password = parts.password is not None or "password" in names
    if has_user and not has_password:
        raise ValueError("the login has no password: write :PASSWORD@ before the host, or USER:PASSWORD@")
    if "sentinel_username" in names and "sentinel_password" not in names:
        raise ValueError("sentinel_username needs sentinel_password")


def check_database(name: str) -> None:
    """Check the database number of a URL. Raises `ValueError`."""
    if not (name.isascii() and name.isdigit()):
        raise ValueError(f"a database is a number, as in redis://HOST:PORT/0, not {quoted(name)}")


def has_password(url: str) -> bool:
    """Return whether `url` contains a password, or may contain one.

    >>> has_password("redis://ann:secret@db.example"), has_password("redis://db.example/0")
    (True, False)
    """
    shown = hide_password(url)
    return shown != url and (shown != UNREADABLE or "@" in url)


def sentinel_login(parts: SplitResult) -> tuple[dict[str, str], SplitResult]:
    """Return the login for the Sentinels themselves, from the query, and the URL without it.

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
    host.encode("idna")  # raises for names that the resolver would reject
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{quoted(written)} is not a host with a port")
    return host, int(port)

"""The callers of a server: by which name they call it, and from which web page.

The check of Host keeps a page away whose own name was pointed at this machine, the check of Origin a page of
another server.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("LocalHost:8000"), host_name("[::1]:80"), host_name("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


def is_own_origin(origin: str | None, host: str) -> bool:
    """Return whether a request comes from a page of the host that it calls.

    >>> is_own_origin("http://127.0.0.1:8000", "127.0.0.1:8000"), is_own_origin(None, "127.0.0.1:8000")
    (True, False)
    """
    if origin is None or not origin.startswith(("http://", "https://")):
        return False
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def is_called(names: Collection[str], host: str | None) -> bool:
    """Return whether a request calls a server by one of these names."""
    return host_name(host or "") in names


def comes_from(names: Collection[str], origin: str | None) -> bool:
    """Return whether a request comes from no page, or from one of these hosts."""
    try:
        return origin is None or host_name(urlsplit(origin).netloc) in names
    except ValueError:
        return False


def calls_one_of(names: Collection[str], host: str | None, origin: str | None) -> bool:
    """Return whether a request calls a server by one of these names, and comes from no page of another.

    >>> own = ("localhost", "[::1]")
    >>> calls_one_of(own, "[::1]:80", None), calls_one_of(own, "localhost:80", "https://evil.example")
    (True, False)
    """
    return is_called(names, host) and comes_from(names, origin)

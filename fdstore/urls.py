"""The hosts that a URL names: one, or several with commas between them.

    redis+cluster://ann:secret@a.example:7000,b.example,[::1]:7002/0

Sentinels and the nodes of a Cluster are written so; `urllib` knows one host.
"""

from __future__ import annotations

from urllib.parse import SplitResult

Address = tuple[str, int]
"""Host and port."""


def addresses(parts: SplitResult, default_port: int) -> list[Address]:
    """The hosts between the login and the path. Raises ValueError for a port that is none.

    >>> from urllib.parse import urlsplit
    >>> addresses(urlsplit("sentinel://ann:secret@a:1,b,[::1]:3/main"), 26379)
    [('a', 1), ('b', 26379), ('::1', 3)]
    """
    return [_address(one, default_port) for one in parts.netloc.rpartition("@")[2].split(",")]


def joined(address: Address) -> str:
    """An address as it is written in a URL.

    >>> joined(("::1", 7000))
    '[::1]:7000'
    """
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _address(written: str, default_port: int) -> Address:
    host, colon, port = written.rpartition(":")
    if not colon or "]" in port:
        host, port = written, str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    host.encode("idna")  # what the resolver would fail at
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{written!r} is no host with a port")
    return host, int(port)

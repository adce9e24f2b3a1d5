"""Where a server of this program listens, and by which names clients may call it."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from fdstore.errors import FDStoreError, InvalidArgument, quoted
from fdstore.http.callers import host_name

_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]")

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""The names by which this machine calls itself, as in the header Host."""


class PortRefused(FDStoreError):
    """A server cannot listen where it was told to."""

    type = "invalid_argument"
    says = "cannot listen on {where}: {problem}; use another port, or 0 for a free one"

    where: str
    problem: str


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, or of a port of this machine. Raises `InvalidArgument`.

    >>> parse_address("8000"), parse_address("[::1]:8000")
    (('127.0.0.1', 8000), ('::1', 8000))
    """
    host, _, port = address.rpartition(":")
    host = (host.removeprefix("[").removesuffix("]") if host.startswith("[") else host) or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65_536) or (":" in host and "[" not in address):
        raise InvalidArgument("http", f"{quoted(address)} is not HOST:PORT, e.g. 127.0.0.1:8000")
    return host.lower(), int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Return whether a host means all interfaces of this machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def allowed_names(host: str, names: Sequence[str]) -> list[str]:
    """Return the host names by which clients may call the server, as `callers.host_name` returns them. Raises
    `InvalidArgument` for a value that is not a host name, and if there is no name at all.

    >>> allowed_names("0.0.0.0", ["FD.example.org:8000", "fd::1"])
    ['fd.example.org', '[fd::1]']
    """
    found = [_called_name(each) for each in names]
    if is_loopback(host):
        found += LOOPBACK_NAMES
    elif not is_wildcard(host):
        found.append(f"[{host}]" if ":" in host else host.lower())
    if not found:
        raise InvalidArgument(
            "host", f"{host} means all interfaces, so name the hosts that clients call with --allow-host"
        )
    return list(dict.fromkeys(found))


def _called_name(name: str) -> str:
    """Return a name that a person gave, without its port, in the form of the header Host."""
    with suppress(ValueError):
        return f"[{IPv6Address(name.strip('[]'))}]"
    found = host_name(name)
    if not _HOST_NAME.fullmatch(found):
        raise InvalidArgument("host", f"{quoted(name)} is not the name of a host, e.g. fd.example.org")
    return found


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one. Raises `PortRefused`.

    Its connections send at once: asyncio asks for that only of sockets that name their protocol, which those
    of `create_server` do not, and an answer's body would wait 40 ms for the client's delayed ACK of its head.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.create_server((host, port), family=family)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found
    except OSError as error:
        raise PortRefused(f"{host}:{port}", (error.strerror or str(error)).lower()) from error


def origin_of(listening: socket.socket, names: Sequence[str] = ()) -> str:
    """Return the URL of a server on this socket, without a path. One that listens on all interfaces has that
    of the first of these host names: its own address would be refused."""
    host, port = listening.getsockname()[:2]
    if is_wildcard(host) and names:
        return f"http://{names[0]}:{port}"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"

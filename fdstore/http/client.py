"""Clients of HTTP, which use the proxies of the environment without failing when they are made.

httpx2 reads `$HTTPS_PROXY`, `$HTTP_PROXY` and `$ALL_PROXY` when a client is made, and raises then what is no
error of its own: `ImportError` for a SOCKS proxy without the package `socksio`, `ValueError` for a scheme
that it does not know, `InvalidURL` for an entry of `$NO_PROXY`, `OSError` for `$SSL_CERT_FILE`. Other
programs set these variables for themselves, and a server on this machine needs none of them. So here a client
has one transport that decides for each request:

    to this machine, or to a host of $NO_PROXY   directly
    else                                         through the proxy for its scheme, or that for all

What a request needs is made when the first one needs it, and what cannot be used is `UnusableSetting`, an
`httpx2.HTTPError` like every other failure of a request.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.request import getproxies

import httpx2

PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")

_KEEPALIVE: list[tuple[int, int, int]] = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5))
        if hasattr(socket, name)
    ),
]
"""A model may think for minutes, in which a firewall would forget a silent connection."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class UnusableSetting(httpx2.TransportError):
    """A proxy or the certificates that the environment names cannot be used. Trying again does not help."""


def open_client(**options: Any) -> httpx2.AsyncClient:
    """Return a client of HTTP; for `options` see `httpx2.AsyncClient`. Raises nothing about the environment:
    its requests do, see `UnusableSetting`."""
    return httpx2.AsyncClient(transport=GuardedTransport(), **options)


def check_way_to(url: str) -> None:
    """Raise `UnusableSetting` if the environment lets no request to a server be made, and
    `httpx2.InvalidURL` for what is no URL."""
    GuardedTransport().transport_for(httpx2.URL(url))


class GuardedTransport(httpx2.AsyncBaseTransport):
    """The connections of one client: without a limit, each direct or through a proxy.

    proxies   by scheme, with "all" and "no", as `urllib.request.getproxies` returns them
    """

    def __init__(self, proxies: Mapping[str, str] | None = None) -> None:
        self._proxies = getproxies() if proxies is None else proxies
        self._transports: dict[tuple[str, str], httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self.transport_for(request.url).handle_async_request(request)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    def transport_for(self, url: httpx2.URL) -> httpx2.AsyncHTTPTransport:
        """Return the connections for requests to a URL, made for the first one. Raises `UnusableSetting`."""
        name = (
            "" if goes_directly(url, self._proxies.get("no", "")) else _proxy_name(self._proxies, url.scheme)
        )
        found = self._transports.get((name, url.scheme))
        if found is None:
            found = _make_transport(name, self._proxies.get(name, ""), url.scheme)
            self._transports[name, url.scheme] = found
        return found


def environment_problems() -> list[str]:
    """Return why requests to other machines would fail because of the environment; [] if they would not."""
    proxies = getproxies()
    found: dict[str, None] = {}
    for scheme in ("https", "http"):
        name = _proxy_name(proxies, scheme)
        try:
            _make_transport(name, proxies.get(name, ""), scheme)
        except UnusableSetting as error:
            found[str(error)] = None
    return list(found)


def needs_environment(url: str) -> bool:
    """Return whether requests to a URL depend on a proxy or on certificates."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        return False
    return parsed.scheme == "https" or not goes_directly(parsed, getproxies().get("no", ""))


def goes_directly(url: httpx2.URL, no_proxy: str) -> bool:
    """Return whether a request takes no proxy. An entry of `no_proxy` is a host with all below it, an address
    or a network, perhaps with a port, or `*`; one that is none of these is ignored, as curl does.

    >>> goes_directly(httpx2.URL("http://api.example.com"), "localhost,fe80::/10,.example.com")
    True
    >>> goes_directly(httpx2.URL("http://127.0.0.1:8080"), ""), goes_directly(httpx2.URL("http://a.b"), "")
    (True, False)
    """
    host = url.host.lower().rstrip(".")
    address = _address(host)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if address is not None and (address.is_loopback or address.is_unspecified):
        return True
    port = str(url.port or (443 if url.scheme == "https" else 80))
    entries = re.split(r"[,\s]+", no_proxy.lower())
    return any(_names(entry, url.scheme, host, address, port) for entry in entries)


def _names(entry: str, scheme: str, host: str, address: _Address | None, port: str) -> bool:
    """Return whether an entry of `$NO_PROXY` names a host, whose address is `address` if it is one."""
    only_scheme, _, named = entry.rpartition("://")
    before, colon, only_port = named.rpartition(":")
    if colon and only_port.isdecimal() and (before.endswith("]") or ":" not in before):
        named = before
    else:
        only_port = ""
    if only_scheme not in ("", "all", scheme) or only_port not in ("", port):
        return False
    if named == "*":
        return True
    if address is not None:
        try:
            return address in ipaddress.ip_network(re.sub(r"[][]", "", named), strict=False)
        except ValueError:
            return False
    suffix = named.lstrip("*").strip(".")
    return bool(suffix) and (host == suffix or host.endswith(f".{suffix}"))


def _address(host: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _proxy_name(proxies: Mapping[str, str], scheme: str) -> str:
    """Return the key in `proxies` of the proxy for a scheme, "" if it has none."""
    return next((name for name in (scheme, "all") if proxies.get(name)), "")


def _make_transport(name: str, proxy: str, scheme: str) -> httpx2.AsyncHTTPTransport:
    """Return a transport for requests of a scheme, through a proxy unless it is "". Raises
    `UnusableSetting`."""
    options: dict[str, Any] = {}
    if proxy:
        options["proxy"] = _parse_proxy(name, proxy)
    # without TLS nothing is verified, and no certificates are read
    verify = _ssl_context() if scheme == "https" else False
    return httpx2.AsyncHTTPTransport(
        verify=verify, limits=httpx2.Limits(), socket_options=_KEEPALIVE, **options
    )


def _parse_proxy(name: str, value: str) -> httpx2.Proxy:
    """Return the proxy that the variable for `name` states, which may hold a password: no error quotes it."""
    variable = next((each for each in (f"{name}_proxy", f"{name.upper()}_PROXY") if each in os.environ), "")
    stated = f"${variable}" if variable else "the proxy of this system"
    remedy = f"unset {variable}, or name the host in NO_PROXY" if variable else "name the host in NO_PROXY"
    url = value if "://" in value else f"http://{value}"
    scheme = url.partition("://")[0].lower()
    if scheme not in PROXY_SCHEMES:
        raise UnusableSetting(f"{stated} has a scheme that is none of {', '.join(PROXY_SCHEMES)}; {remedy}")
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise UnusableSetting(
            f"{stated} is a SOCKS proxy, which needs the package socksio: pip install socksio, or {remedy}"
        )
    try:
        proxy = httpx2.Proxy(url, ssl_context=_ssl_context() if scheme == "https" else None)
        port, _ = proxy.url.port or 1, proxy.raw_auth
    except (httpx2.InvalidURL, ValueError) as error:
        raise UnusableSetting(f"{stated} is not the URL of a proxy, as http://HOST:PORT; {remedy}") from error
    if not proxy.url.host or "%" in proxy.url.host or port > 65_535:
        raise UnusableSetting(f"{stated} is not the URL of a proxy, as http://HOST:PORT; {remedy}")
    return proxy


def _ssl_context() -> ssl.SSLContext:
    """Return the SSL context that all clients share."""
    return _load_certificates(*(os.environ.get(name) for name in CERTIFICATE_VARIABLES))


@functools.lru_cache(maxsize=1)
def _load_certificates(*values: str | None) -> ssl.SSLContext:
    """Return an SSL context by the `values` of the variables. To create one takes some 30 ms."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        # the certificates are read without the name of their file, the log of keys with it
        named = [each for each in zip(CERTIFICATE_VARIABLES, values, strict=True) if each[1]]
        named = [each for each in named if each[1] == error.filename] or named
        stated = f"${named[0][0]}" if named else "the system's certificates"
        problem = error.strerror or str(error)
        raise UnusableSetting(f"{stated} cannot be used for TLS: {problem}; correct or unset it") from error

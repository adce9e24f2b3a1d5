"""Errors of `connect` for a URL whose scheme is not that of the port, or whose files for TLS are missing."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import fdstore
from fdstore.errors import InvalidArgument, StoreUnavailable
from tests.on_cluster.doors import Authority, TlsProxy
from tests.on_redis.connections.test_connect import BOTH


@pytest.fixture
def tls_port(tmp_path: Path) -> Iterator[int]:
    """A port that speaks TLS with a certificate of an authority that nobody knows."""
    with TlsProxy(Authority(tmp_path), behind=1) as proxy:
        yield proxy.port


@BOTH
def test_a_plain_url_of_a_port_with_tls_is_told_the_other_scheme(connect, tls_port: int) -> None:
    with pytest.raises(StoreUnavailable, match=re.escape("the URL begins with rediss://")):
        connect(f"redis://127.0.0.1:{tls_port}")


@BOTH
def test_a_certificate_of_an_unknown_authority_is_told_the_option(connect, tls_port: int) -> None:
    with pytest.raises(StoreUnavailable, match=re.escape("?ssl_ca_certs=FILE names the certificate")):
        connect(f"rediss://127.0.0.1:{tls_port}")


@BOTH
def test_an_address_in_place_of_the_name_of_the_certificate_is_told_the_name(connect, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "localhost")

    with (
        TlsProxy(authority, behind=1) as proxy,
        pytest.raises(StoreUnavailable, match="so write the name that the certificate has"),
    ):
        connect(f"rediss://127.0.0.1:{proxy.port}?ssl_ca_certs={authority.file}")


def test_a_url_with_tls_of_a_plain_port_is_told_the_other_scheme() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(StoreUnavailable, match=re.escape("the URL begins with redis://")):
            fdstore.connect(f"rediss://127.0.0.1:{port}", patience=0.3)


@BOTH
@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile"])
def test_a_missing_file_is_named_with_its_option(connect, option: str) -> None:
    with pytest.raises(InvalidArgument, match=f"url: {option}: /nowhere.pem: No such file or directory"):
        connect(f"rediss://127.0.0.1:1?{option}=/nowhere.pem")

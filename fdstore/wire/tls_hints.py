"""Find mistakes in the TLS of a store's URL: files that are not there, and the wrong scheme for a port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fdstore.errors import InvalidArgument, StoreUnavailable, joined

FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")

_TLS = "if this port speaks TLS, the URL begins with rediss://"
_PLAIN = "if this port speaks no TLS, the URL begins with redis://"
_HINTS = {
    "redis": {"reset by peer": _TLS, "closed": _TLS},
    "rediss": {
        "Timeout": _PLAIN,
        "no connection within": _PLAIN,
        "IP address mismatch": "the URL names an address, so write the name that the certificate has",
        "Hostname mismatch": "write the name that the certificate has in the URL",
        "CERTIFICATE_VERIFY_FAILED": "?ssl_ca_certs=FILE names the certificate of its authority",
        "NO_CERTIFICATE_OR_CRL_FOUND": "ssl_ca_certs names a file without a certificate",
        "KEY_VALUES_MISMATCH": "ssl_keyfile is not the key of ssl_certfile",
        "PEM lib": "ssl_certfile and ssl_keyfile name files with a certificate and with its key",
    },
}
"""The advice for words of an error, by the scheme of the URL."""


def check_files(options: Mapping[str, Any]) -> None:
    """Check that the files that a URL names for TLS can be opened. Raises `InvalidArgument`."""
    for name in FILES:
        if path := options.get(name):
            try:
                with open(path, "rb"):
                    pass
            except IsADirectoryError:
                continue
            except OSError as error:
                raise InvalidArgument("url", f"{name}: {path}: {error.strerror}") from error


def add_hint(error: StoreUnavailable) -> None:
    """Add to the error of a first connection what to try if its URL has the wrong scheme.

    >>> error = StoreUnavailable("redis://h:6390", "reset by peer")
    >>> add_hint(error)
    >>> error.problem
    'reset by peer; if this port speaks TLS, the URL begins with rediss://'
    """
    hints = _HINTS.get(error.where.partition(":")[0].partition("+")[0], {})
    hint = next((hint for words, hint in hints.items() if words in error.problem), None)
    if hint is not None:
        error.problem = joined(error.problem, hint)
        error.args = error.where, error.problem

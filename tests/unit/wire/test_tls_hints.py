"""The advice for a first connection whose URL does not fit the server."""

from __future__ import annotations

import pytest

from fdstore.errors import StoreUnavailable
from fdstore.wire.tls_hints import add_hint

VERIFY = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (f"{VERIFY}: IP address mismatch, certificate is not valid for '127.0.0.1'.", "write the name"),
        (f"{VERIFY}: Hostname mismatch, certificate is not valid for 'db'.", "write the name"),
        (f"{VERIFY}: self-signed certificate", "?ssl_ca_certs=FILE names the certificate"),
    ],
)
def test_a_certificate_that_is_not_accepted_says_what_to_write(said, advice):
    error = StoreUnavailable("rediss://127.0.0.1:6390", said)

    add_hint(error)

    assert error.problem.startswith(said)
    assert advice in error.problem
    assert error.args == (error.where, error.problem)

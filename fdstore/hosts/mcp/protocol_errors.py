"""Errors of the server: typed errors of ours as those of the protocol, for requests that are not calls of
tools; and what the server itself refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from fdstore.errors import FDStoreError


@contextmanager
def as_protocol_errors(uri: str | None = None) -> Iterator[None]:
    """Convert typed errors of the block: the code is -32602 if the request is at fault, and `data` has the
    type and the URI that was asked for."""
    try:
        yield
    except FDStoreError as error:
        data = {"type": error.type} if uri is None else {"type": error.type, "uri": uri}
        code = INVALID_PARAMS if error.of_request else INTERNAL_ERROR
        raise MCPError(code, str(error), data) from error


class NotPermitted(FDStoreError):
    """A caller used what neither the server's options nor its token permit."""

    type = "permission_error"
    says = (
        "{what} needs the permission {permission}, which you do not have here; the operator gives it with "
        "--allow, or a token"
    )
    of_request = True

    what: str
    permission: str


class TooManyWatches(FDStoreError):
    """The server's clients watch as many contents as it allows."""

    type = "quota_exceeded"
    says = "{allowed} contents are watched already, the most of a server; end other subscriptions"

    allowed: int

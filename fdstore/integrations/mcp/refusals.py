"""Errors of the server: what it refuses, and where it cannot listen."""

from __future__ import annotations

from fdstore.errors import FDStoreError


class NotPermitted(FDStoreError):
    """A caller used what neither the server's options nor its token permit."""

    type = "permission_error"

    def __init__(self, what: str, permission: str) -> None:
        super().__init__(what, permission)
        self.what, self.permission = what, permission

    def __str__(self) -> str:
        return (
            f"{self.what} needs the permission {self.permission}, which you do not have here; the operator "
            "gives it with --allow, or a token"
        )


class TooManyWatches(FDStoreError):
    """The server's clients watch as many contents as it allows."""

    type = "quota_exceeded"

    def __init__(self, allowed: int) -> None:
        super().__init__(allowed)
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.allowed} contents are watched already, the most of a server; end other subscriptions"

"""Refusals of the inspector."""

from __future__ import annotations

from fdstore.errors import FDStoreError


class KillRefused(FDStoreError):
    """The inspector was started without the permission to cancel processes."""

    type = "permission_error"

    def __str__(self) -> str:
        return "this inspector only reads; start it with --allow kill to cancel processes"

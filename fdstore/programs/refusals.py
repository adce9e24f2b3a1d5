"""The error for functions that the owner of a process does not let code of `run_python` call."""

from __future__ import annotations

from fdstore.errors import FDStoreError


class NotForCode(FDStoreError):
    """Code calls a function that it may not call here."""

    type = "permission_error"
    says = "code may not call {function} here; {advice}"

    function: str
    advice: str

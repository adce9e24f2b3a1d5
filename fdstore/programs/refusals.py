"""The error for functions that the owner of a process does not let code of `run_python` call."""

from __future__ import annotations

from fdstore.errors import FDStoreError


class NotForCode(FDStoreError):
    """Code calls a function that it may not call here."""

    type = "permission_error"

    def __init__(self, function: str, advice: str) -> None:
        super().__init__(function, advice)
        self.function, self.advice = function, advice

    def __str__(self) -> str:
        return f"code may not call {self.function} here; {self.advice}"

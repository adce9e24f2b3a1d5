"""What people call the server of a model and the key for it: errors say what to change, and never its
value."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from fdstore.agents.loop.models.base import ModelFailed
from fdstore.model.providers import PROVIDERS

OF_PROGRAM = "base_url of the program"
KEY_HEADERS = ("authorization", "x-api-key", "api-key")
_VERSION = re.compile(r"/v[0-9]")


class ServerNames(msgspec.Struct, frozen=True):
    """The provider, the URL that a program names (None: that of the SDK), and what has the key."""

    provider: str
    base_url: str | None
    key: str

    @property
    def url(self) -> str:
        """What states the URL."""
        return PROVIDERS[self.provider].url if self.base_url is None else OF_PROGRAM

    @property
    def no_url(self) -> str:
        return f"{self.url} is not the URL of a server, as https://HOST:PORT: correct or unset it"

    def advice(self, status: int, path: str) -> str:
        """Return what to do about a response with this status to a request whose URL had this path; "" if
        that is not known."""
        match status:
            case 401:
                return f"check {self.key}"
            case 403:
                return f"check what {self.key} may use"
            case 404:
                return f"check [model] name and {self.url}{self._other_form(path)}"
        return ""

    def _other_form(self, path: str) -> str:
        """Return how the URL would be written otherwise, if the version of the API stands twice in it or
        nowhere."""
        if "/v1/v1/" in path:
            return f": the SDK adds /v1 itself, so {self.url} ends without it"
        if PROVIDERS[self.provider].versioned and not _VERSION.search(path):
            return f": the SDK adds no /v1 itself, so {self.url} ends in it"
        return ""

    def check_headers(self, headers: Mapping[str, object]) -> None:
        """Refuse a key that no header can hold: the HTTP library would quote it in its error. Raises
        `ModelFailed`."""
        for name, value in headers.items():
            if isinstance(value, str) and not (value.isascii() and value.isprintable()):
                which = self.key if name in KEY_HEADERS else f"the header {name}"
                raise ModelFailed(f"{which} has characters that cannot be sent, such as a line end")

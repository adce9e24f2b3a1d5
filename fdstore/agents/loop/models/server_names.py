"""What people call the server of a model and the key for it: errors say what to change, and never its
value."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx2
import msgspec

from fdstore.agents.loop.models.base import ModelFailed
from fdstore.model.providers import PROVIDERS

OF_PROGRAM = "base_url"
KEY_HEADERS = ("authorization", "x-api-key", "api-key")
_API = re.compile(r"/(?:chat/completions|responses)/?\Z")


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

    def advice(self, status: int, asked: httpx2.URL) -> str:
        """Return what to do about a response with this status, to a request to this URL; "" if that is not
        known."""
        match status:
            case 401:
                return f"check {self.key}"
            case 403:
                return f"check what {self.key} may use"
            case 404:
                other = self._other_form(asked)
                return f"check [model] name and {self.url}{other and f', of which another form is {other}'}"
        return ""

    def _other_form(self, asked: httpx2.URL) -> str:
        """Return how the URL would be written with or without the version of the API, which some SDKs add and
        others do not; "" if it cannot be meant otherwise."""
        path = asked.path
        if PROVIDERS[self.provider].versioned:
            base = _API.sub("", path)
            path = base.removesuffix("/v1") if base.endswith("/v1") else f"{base}/v1"
        elif "/v1/v1/" in path:
            path = path.partition("/v1/v1/")[0]
        else:
            return ""
        url = httpx2.URL(scheme=asked.scheme, host=asked.host, port=asked.port, path=path or "/")
        return str(url).rstrip("/")

    def check_headers(self, headers: Mapping[str, object]) -> None:
        """Refuse a key that no header can hold: the HTTP library would quote it in its error. Raises
        `ModelFailed`."""
        for name, value in headers.items():
            if isinstance(value, str) and not (value.isascii() and value.isprintable()):
                which = self.key if name in KEY_HEADERS else f"the header {name}"
                raise ModelFailed(f"{which} has characters that cannot be sent, such as a line end")

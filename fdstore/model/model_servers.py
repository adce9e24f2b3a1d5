"""The server that answers for a model: which API it speaks, where it is, and the variable with its key.

A program names them, and a program may come from anybody who can write to the store. So a key goes only where
its owner said: the keys that an SDK reads itself go to the server that the SDK's own variables name, never to
one that a program names; a server that a program names gets the variable that the program names, and on a
worker of a store by URL both need the leave of its operator (`ModelAccess`).

URLs are compared by their canonical form, and that form is what clients get: two parsers never read one URL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

from fdstore.errors import InvalidArgument, NotAllowed, quoted
from fdstore.model.fields import about
from fdstore.model.providers import DEFAULT_PROVIDER, PROVIDERS, ProviderName

MAX_URL = 500

_URL = re.compile(
    r"(https?)://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?((?:/[a-z0-9._~!$&'()*+,;:@%-]*)*)",
    re.ASCII | re.IGNORECASE,
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
_PORTS = {"http": 80, "https": 443}
_STEPS = re.compile(r"(?:\.|%2e){1,2}|.*%(?:2f|5c).*", re.IGNORECASE)
"""Segments of a path that some servers read as others do not."""

URL_RULE = "is not the URL of a server; write https://HOST:PORT/PATH, without user, query and fragment"
VARIABLE_RULE = "must be the name of a variable, such as MY_KEY; a key itself does not belong into a program"


def canonical_url(url: str) -> str | None:
    """Return the one form of all URLs that mean the same server; None for what cannot be one.

    >>> canonical_url("HTTPS://Gateway.example.:443/v1/")
    'https://gateway.example/v1'
    >>> canonical_url("https://api.example@evil.example") is None
    True
    """
    found = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if found is None:
        return None
    scheme, host, path = found[1].lower(), found[2].lower().rstrip("."), found[4].rstrip("/")
    port = int(found[3] or _PORTS[scheme])
    if not host or not 1 <= port <= 65_535 or any(map(_STEPS.fullmatch, path.split("/"))):
        return None
    return f"{scheme}://{host}{'' if port == _PORTS[scheme] else f':{port}'}{path}"


ProviderKey = Annotated[ProviderName, about("The API that is called.")]
BaseUrl = Annotated[
    str | None,
    about(
        "The URL of the server, as the SDK of the provider has it: without /v1 for the Messages API, with it"
        " for those of OpenAI. Default: that of the SDK. None of the SDK's own keys is sent to it.",
        "http://127.0.0.1:8080",
    ),
]
KeyVariable = Annotated[
    str | None,
    about("The variable with the key for the server. Default: the SDK's own; none with base_url.", "MY_KEY"),
]


class ModelServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model is asked, and the base of what names a model for a worker. Raises `InvalidArgument`."""

    provider: ProviderKey = DEFAULT_PROVIDER
    base_url: BaseUrl = None
    api_key_env: KeyVariable = None

    def __post_init__(self) -> None:
        if self.provider not in PROVIDERS:
            choices = ", ".join(PROVIDERS)
            raise InvalidArgument("provider", f"{quoted(self.provider)} is not known; there are: {choices}")
        if mistake := server_mistake(self.base_url, self.api_key_env):
            raise InvalidArgument(*mistake)

    @property
    def server(self) -> ModelServer:
        """The server alone, in its canonical form."""
        url = None if self.base_url is None else canonical_url(self.base_url)
        return ModelServer(provider=self.provider, base_url=url, api_key_env=self.api_key_env)

    @property
    def is_own(self) -> bool:
        """Whether all is as the SDK's own variables say."""
        return self.base_url is None and self.api_key_env is None


def server_mistake(url: object, variable: object) -> tuple[str, str] | None:
    """Return the field of a server that cannot be what it is, `base_url` or `api_key_env`, and why."""
    if url is not None and (not isinstance(url, str) or canonical_url(url) is None):
        return "base_url", URL_RULE  # not quoted: it may have a password in it
    if variable is not None and not (isinstance(variable, str) and _VARIABLE.fullmatch(variable)):
        return "api_key_env", VARIABLE_RULE  # not quoted: it may be a key
    return None


class AllowedServer(msgspec.Struct, frozen=True):
    """A server that programs may name, and the variable whose value it may get; "" for none."""

    url: str
    variable: str = ""

    @staticmethod
    def parse(text: str, option: str = "--allow-model-server") -> AllowedServer:
        """Return what an operator wrote as URL or URL=VARIABLE. Raises `InvalidArgument`.

        >>> AllowedServer.parse("http://GPU1:8000/=GPU_KEY")
        AllowedServer(url='http://gpu1:8000', variable='GPU_KEY')
        """
        named, equals, variable = text.partition("=")
        url = canonical_url(named)
        if url is None:
            raise InvalidArgument(option, URL_RULE)
        if equals and not _VARIABLE.fullmatch(variable):
            raise InvalidArgument(option, f"after the = {VARIABLE_RULE}")
        return AllowedServer(url, variable)


class ModelAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of models that programs may name, and what is missing to ask them.

    all_allowed  they may name each, and each variable
    allowed      else these
    own_urls     the URLs of the SDKs' own servers, by provider, for programs that name a variable alone
    lacking      why a provider's client cannot be used, as for lack of a package, by provider
    keyless      why a provider's own server cannot be asked, by provider; "" if it can
    variables    the variables that are set, of those that may be named; None: not known
    """

    all_allowed: bool = True
    allowed: tuple[AllowedServer, ...] = ()
    own_urls: Mapping[str, str] = {}
    lacking: Mapping[str, str] = {}
    keyless: Mapping[str, str] = {}
    variables: tuple[str, ...] | None = None

    @property
    def names_any(self) -> bool:
        """Whether programs may name a server at all."""
        return self.all_allowed or bool(self.allowed)

    def check(self, server: ModelServer) -> None:
        """Raise `NotAllowed` for a server, or a variable for it, that a program may not name."""
        if self.all_allowed or server.is_own:
            return
        url = canonical_url(server.base_url or self.own_urls.get(server.provider, ""))
        variable = server.api_key_env
        option = f"--allow-model-server {url or 'URL'}{f'={variable}' if variable else ''}"
        of_server = [each for each in self.allowed if each.url == url]
        if not of_server:
            raise NotAllowed(f"the server of models {url or 'of ' + server.provider}", option)
        if variable and all(each.variable != variable for each in of_server):
            raise NotAllowed(f"the variable {variable} for the server of models {url}", option)

    def missing(self, server: ModelServer, otherwise: str = "") -> str:
        """Return what is missing here to ask a server; "" if nothing is. `otherwise` is the answer for a
        provider's own server of which nothing is known."""
        if lack := self.lacking.get(server.provider):
            return lack
        if server.is_own:
            return self.keyless.get(server.provider, otherwise)
        if server.api_key_env and self.variables is not None and server.api_key_env not in self.variables:
            return not_set(server.api_key_env)
        return ""


def no_key(title: str, variable: str) -> str:
    """Return the sentence about an API without a key."""
    scripted = "`python -m fdstore.testing` runs a scripted model, which needs no key"
    return f"no key for {title}: set {variable}; {scripted}"


def not_set(variable: str) -> str:
    """Return the sentence about a variable without a value."""
    return f"the variable {variable}, which has the key of a model ([model] api_key_env), is not set"


def own_url(provider: str, environ: Mapping[str, str]) -> str:
    """Return the URL of the SDK's own server; "" if it has a region or another name in it."""
    row = PROVIDERS[provider]
    return environ.get(row.url) or row.own_url

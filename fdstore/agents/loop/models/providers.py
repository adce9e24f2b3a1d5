"""Open the clients of models: which class, with which key, to which server; and what is missing for that.

The table of providers is `fdstore.model.providers`. Its clients are imported when they are opened, since an
SDK takes a second, and most programs need one. Keys are read here and nowhere else (see `model_servers`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import msgspec

from fdstore.agents.loop.models.base import Model, ModelFailed
from fdstore.model.model_servers import ModelAccess, ModelServer, canonical_url, no_key, not_set, own_url
from fdstore.model.providers import CLIENTS, DEFAULT_PROVIDER, PROVIDERS
from fdstore.setup.optional_packages import how_to_install, is_installed

if TYPE_CHECKING:
    from fdstore.agents.loop.bundle import Program


def open_model(server: ModelServer, environ: Mapping[str, str] = os.environ) -> Model:
    """Return a client for a server, with the key that belongs to it. Raises `ModelFailed` if something is
    missing."""
    if lack := lacking(server.provider):
        raise ModelFailed(lack)
    options: dict[str, Any] = {}
    if server.base_url is not None:
        options = {"base_url": server.base_url, "api_key": "", "key_name": "[model] api_key_env"}
    if server.api_key_env is not None:
        key = environ.get(server.api_key_env, "").strip()
        if not key:
            raise ModelFailed(not_set(server.api_key_env))
        options |= {"api_key": key, "key_name": server.api_key_env}
    return open_class(server.provider)(**options)


def open_class(provider: str) -> Callable[..., Model]:
    """Import the client of a provider, with its SDK. Raises `ImportError`."""
    module, _, name = PROVIDERS[provider].client.partition(":")
    return cast(Callable[..., Model], getattr(import_module(f"{CLIENTS}.{module}"), name))


def import_client(provider: str) -> None:
    """Import the client of a provider, if it can be: whoever opens it later says what is wrong with it."""
    with suppress(ImportError):
        open_class(provider)


def import_keyed(environ: Mapping[str, str] = os.environ) -> None:
    """Import the clients that have a key in the environment, with their SDKs.

    A worker does so before it forks, so that its processes share them. Others are imported when an agent
    first needs one.
    """
    for name, row in PROVIDERS.items():
        if any(environ.get(key) for key in row.keys) and not lacking(name):
            import_client(name)
            for package in row.packages:
                import_module(package)  # an SDK imports that of its platform when a client is opened


def lacking(provider: str) -> str:
    """Return which package the client of a provider lacks, and how to install it; "" if none."""
    row = PROVIDERS[provider]
    for package in row.packages:
        if not is_installed(package):
            how = how_to_install(row.extra)
            return f'the provider "{provider}" needs the package {package}; install it with: {how}'
    return ""


def missing(server: ModelServer, environ: Mapping[str, str] = os.environ) -> str:
    """Return what is missing to ask a server, without a request; "" if nothing is."""
    if lack := lacking(server.provider):
        return lack
    if server.api_key_env is not None:
        return "" if environ.get(server.api_key_env, "").strip() else not_set(server.api_key_env)
    if server.base_url is not None:
        return ""
    row = PROVIDERS[server.provider]
    known = any(environ.get(each) or os.path.exists(os.path.expanduser(each)) for each in row.elsewhere)
    has_key = not row.keys or any(environ.get(name) for name in row.keys)
    for group in row.needs[:1]:
        if not known and not any(environ.get(name) for name in group):
            needed = ", ".join(map(" or ".join, row.needs))
            return f"{row.title} lacks something: {' or '.join(group)} is not set (it needs {needed})"
    if not has_key and not (row.sign_in and (known or row.needs)):
        return no_key(row.title, row.keys[0])
    try:
        if has_key and row.own_url:
            _check_own(server.provider, environ)
        else:
            open_model(server).close()
    except ModelFailed as error:
        return str(error)
    return ""


def _check_own(provider: str, environ: Mapping[str, str]) -> None:
    """Check what the environment says of an SDK's own server, without the SDK. Raises `ModelFailed`."""
    import httpx2  # it takes half a second, and most commands ask no model

    from fdstore.agents.loop.models.server_names import ServerNames
    from fdstore.agents.loop.models.tries import is_server_url

    row = PROVIDERS[provider]
    names = ServerNames(provider, None, next(iter(row.keys), "no key"))
    try:
        url = httpx2.URL(own_url(provider, environ))
    except httpx2.InvalidURL as error:
        raise ModelFailed(names.no_url) from error
    if not is_server_url(url):
        raise ModelFailed(names.no_url)
    names.check_headers({"authorization": next(filter(None, map(environ.get, row.keys)), None)})


def notes_on(program: Program) -> tuple[str, ...]:
    """Return what a program asks of its providers that they lack, and what is missing here to ask them. No
    request is made. The key of Anthropic's own server is left out: mostly another machine runs the agent."""
    found = []
    for server in program.servers:
        if server.is_own and server.provider == DEFAULT_PROVIDER:
            continue
        if problem := missing(server):
            found.append(f'provider "{server.provider}": not from here: {problem}')
    asked = {
        "parameters.thinking": "thinking" in program.parameters,
        "model.deferred_tools": bool(program.deferred_tools),
        "model.prompt_cache": isinstance(program.prompt_cache, str),
    }
    for key, how in PROVIDERS[program.provider].lacks.items():
        if asked.get(key):
            section, _, name = key.partition(".")
            found.append(f'provider "{program.provider}": [{section}] {name} {how}')
    return tuple(found)


def access_here(access: ModelAccess, environ: Mapping[str, str] = os.environ) -> ModelAccess:
    """Return `access` with what is missing on this machine."""
    return msgspec.structs.replace(
        access,
        # a URL with a password in it has no canonical form, and is not told
        own_urls={name: canonical_url(own_url(name, environ)) or "" for name in PROVIDERS},
        lacking={name: lack for name in PROVIDERS if (lack := lacking(name))},
        keyless={name: missing(ModelServer(provider=name), environ) for name in PROVIDERS},
        variables=tuple(
            sorted(
                name
                for name in (environ if access.all_allowed else {each.variable for each in access.allowed})
                if environ.get(name)
            )
        ),
    )


class ModelClients:
    """Clients of models, one for each server, opened when they are first needed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[ModelServer, Model] = {}

    def __call__(self, server: ModelServer) -> Model:
        """Return the client for a server. Raises `ModelFailed`."""
        with self._lock:
            if server not in self._clients:
                self._clients[server] = open_model(server)
            return self._clients[server]

    def close(self) -> None:
        """Close all clients."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

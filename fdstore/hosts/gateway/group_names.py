"""The names by which a host knows what several servers have, and which server each belongs to.

The tool `list_issues` of the server `github` is `github__list_issues`, prompts alike; resources keep their
URIs. A name that is too long for hosts is cut, and ends with a digest of the whole, so it is the same each
time.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from msgspec import Raw

from fdstore.hosts.gateway.json_parts import encode, object_at, parts_of
from fdstore.hosts.gateway.rewriting import remember

SEPARATOR = "__"
"""Between the name of a server, which has none, and that of its tool."""

MAX_NAME_CHARS = 64
"""The length of the names that hosts and models take."""
DIGEST_CHARS = 12
_CUT = re.compile(rf".{{{MAX_NAME_CHARS - DIGEST_CHARS - 1}}}_[0-9a-f]{{{DIGEST_CHARS}}}", re.DOTALL)

MAX_LISTED = 100_000
"""The most names and resources of servers that are remembered with their servers."""

WHOLE_NAME = "fdstore/name"
"""The field of `_meta` with the name of a tool that was cut."""


class GroupNames:
    """The names of tools, prompts and resources that have been listed."""

    def __init__(self) -> None:
        self._cut: dict[str, tuple[str, str]] = {}
        self._resources: dict[str, str] = {}
        self._templates: dict[str, str] = {}

    def is_unknown(self, shown: str) -> bool:
        """Return whether a name was cut, and not here: the host knows it from before this gateway began."""
        return shown not in self._cut and _CUT.fullmatch(shown) is not None

    def named_by(self, shown: str) -> tuple[str, str]:
        """Return the server that a name leads to, and its own name for the tool or prompt."""
        if shown in self._cut:
            return self._cut[shown]
        server, _, name = shown.partition(SEPARATOR)
        return server, name

    def owner(self, uri: str) -> str | None:
        """Return the server of a resource: the one that listed it, or whose template it fits best."""
        if uri in self._resources:
            return self._resources[uri]
        fitting = [begin for begin in self._templates if uri.startswith(begin)]
        return self._templates[max(fitting, key=len)] if fitting else None

    def shown(self, method: str, server: str, key: str, item: Raw) -> tuple[str, Raw]:
        """Return an item of a list as the host sees it, with what tells it apart there, and note whose it
        is."""
        if method in ("tools/list", "prompts/list"):
            whole = f"{server}{SEPARATOR}{key}"
            public = public_name(whole)
            fields = parts_of(item) or {}
            if public != whole:
                remember(self._cut, public, (server, key), MAX_LISTED)
                fields["_meta"] = encode({**object_at(fields, "_meta"), WHOLE_NAME: whole})
            return public, encode({**fields, "name": public})
        known, own = (
            (self._resources, key) if method == "resources/list" else (self._templates, key.partition("{")[0])
        )
        if own not in known:
            remember(known, own, server, MAX_LISTED)
        return f"{server} {key}", item


def public_name(whole: str) -> str:
    """Return the name of a tool that a host sees: the whole, or one of 64 characters that stands for it.

    >>> public_name("git__log"), public_name("git__" + "log_" * 20)
    ('git__log', 'git__log_log_log_log_log_log_log_log_log_log_log_lo_34e804debb45')
    """
    if len(whole) <= MAX_NAME_CHARS:
        return whole
    digest = blake2b(whole.encode(), digest_size=DIGEST_CHARS // 2).hexdigest()
    return f"{whole[: MAX_NAME_CHARS - DIGEST_CHARS - 1]}_{digest}"

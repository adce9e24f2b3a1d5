"""Tokens of callers on the network: who may use which process, until when.

    fdstore:logins       hash   SHA-256 of a token -> what it permits (JSON)    `fdstore token`
    fdstore:token_uses   hash   SHA-256 of a token -> when it was last used     servers, once a minute

A token is 256 random bits that are shown once. Only its hash is stored, and a token is checked by looking its
hash up, whose duration tells an attacker nothing. The first key begins with `l` like `limits`, so that the
users of workers, who may write other keys, cannot give tokens (deploy/users.acl).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from contextlib import suppress
from typing import Literal, get_args

import msgspec

from fdstore.errors import FDStoreError, InvalidArgument, NotFound, quoted
from fdstore.model.records import MAX_MOMENT_S, Moment, Record, Unreadable
from fdstore.store.clock import redis_now, seconds_of
from fdstore.store.keys import check_process
from fdstore.store.record_format import (
    UNREADABLE,
    decode_moment,
    decode_record,
    decoding,
    show_bytes,
    skipping,
)
from fdstore.wire.operation import Operation

Permission = Literal["read", "write", "pipe", "export", "python", "answer"]

PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

USED_EVERY_S = 60.0
"""The interval at which the use of a token is recorded."""

_MARK = "fdst_"
_HASHED = "the token with the hash"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_MAX_CHARS = 200


class Token(Record, frozen=True, kw_only=True):
    """The access that a token gives: `permissions` on one process, with `whole_tree` also reading the other
    processes of its tree. Times are seconds since the epoch by the clock of Redis; `expires_at` is None for a
    token that does not expire, `used_at` for one that was not used yet."""

    name: str
    process: str
    permissions: tuple[Permission, ...]
    whole_tree: bool = False
    created_at: Moment
    expires_at: Moment | None = None
    used_at: Moment | None = None


def logins_key(prefix: str) -> str:
    return f"{prefix}:logins"


def uses_key(prefix: str) -> str:
    return f"{prefix}:token_uses"


def new_secret() -> str:
    """Return a new token."""
    return _MARK + secrets.token_urlsafe(32)


def add_token(
    prefix: str,
    secret: str,
    name: str,
    process: str,
    permissions: frozenset[Permission],
    *,
    whole_tree: bool = False,
    expires_s: float | None = None,
) -> Operation[Token]:
    """Store a new token, whose text is `secret`. The process need not exist yet. Raises `InvalidArgument`,
    also for a name that is taken and for an end beyond all calendars."""
    if not _NAME.fullmatch(name):
        raise InvalidArgument("name", f"{quoted(name)} is not a name; use 1-64 letters, digits, _ . @ and -")
    if not permissions:
        raise InvalidArgument("allow", f"name at least one of: {', '.join(PERMISSIONS)}")
    check_process(process)
    if any(each.name == name for each in (yield from _tokens(prefix)).values()):
        raise InvalidArgument("name", f"there is a token {name} already; remove it, or use another name")
    now_s = yield from redis_now()
    if expires_s is not None and now_s + expires_s >= MAX_MOMENT_S:
        raise InvalidArgument("expires", "it is after the year 9999; without it a token never expires")
    token = Token(
        name=name,
        process=process,
        permissions=tuple(each for each in PERMISSIONS if each in permissions),
        whole_tree=whole_tree,
        created_at=now_s,
        expires_at=None if expires_s is None else now_s + expires_s,
    )
    yield [("HSET", logins_key(prefix), _hash(secret), msgspec.json.encode(token))]
    return token


def find_token(prefix: str, secret: str) -> Operation[Token | None]:
    """Return the token with this text, None if there is none or it has expired. One round trip, and a second
    one at most once a minute, which records the use and may fail."""
    if not secret.startswith(_MARK) or len(secret) > _MAX_CHARS or not secret.isascii():
        return None
    digest = _hash(secret)
    stored, used, time = yield [
        ("HGET", logins_key(prefix), digest),
        ("HGET", uses_key(prefix), digest),
        ("TIME",),
    ]
    if stored is None:
        return None
    token, now_s = _decoded(stored, used, f"{_HASHED} {digest}"), seconds_of(time)
    if token.expires_at is not None and now_s >= token.expires_at:
        return None
    if token.used_at is None or not 0 <= now_s - token.used_at < USED_EVERY_S:
        try:
            yield [("HSET", uses_key(prefix), digest, f"{now_s:.0f}")]
        except FDStoreError:
            return token  # a full or read-only store can still be read
    return token


def list_tokens(prefix: str, damaged: list[Unreadable] | None = None) -> Operation[list[Token]]:
    """Return all tokens, expired ones too, by name; add those that cannot be read to `damaged`."""
    return sorted((yield from _tokens(prefix, damaged)).values(), key=lambda each: each.name)


def remove_token(prefix: str, name: str) -> Operation[None]:
    """Remove a token; the next request with it is refused. One that cannot be read has its hash for a name.
    Raises `NotFound`, which lists the names."""
    damaged: list[Unreadable] = []
    known = yield from _tokens(prefix, damaged)
    digests = [digest for digest, each in known.items() if each.name == name]
    if f"{_HASHED} {name}" in [each.what for each in damaged]:
        digests.append(name)
    if not digests:
        raise NotFound(f"token {name}", tuple(each.name for each in known.values()))
    yield [("HDEL", key, *digests) for key in (logins_key(prefix), uses_key(prefix))]


def _tokens(prefix: str, damaged: list[Unreadable] | None = None) -> Operation[dict[str, Token]]:
    """Return the tokens by their hashes; add those that cannot be read to `damaged`."""
    stored, used = yield [("HGETALL", logins_key(prefix)), ("HGETALL", uses_key(prefix))]
    uses = dict(zip(used[::2], used[1::2], strict=True))
    found = {}
    for digest, record in zip(stored[::2], stored[1::2], strict=True):
        with skipping([] if damaged is None else damaged):
            hashed = show_bytes(digest)
            found[hashed] = _decoded(record, uses.get(digest), f"{_HASHED} {hashed}")
    return found


def _decoded(stored: bytes, used: bytes | None, what: str) -> Token:
    token = decode_record(stored, Token, what)
    with decoding(what):
        check_process(token.process)
    used_at = None
    with suppress(*UNREADABLE):  # it permits nothing, and servers may write it
        used_at = None if used is None else decode_moment(used)
    return msgspec.structs.replace(token, used_at=used_at)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()

"""Problems that the operator of a store has accepted, so that `fdstore doctor` finds the store well again.

    fdstore:let_pass    hash    subject of a problem -> why, and of which server (JSON)

A distribution may have mended an old version, which its number does not tell. What is accepted holds for that
version of the server: after an upgrade the problem is one again, if it still is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fdstore.model.records import Record
from fdstore.store.doctor.safety import Finding
from fdstore.store.record_format import decode_or_none, show_bytes
from fdstore.wire.operation import Operation

VERSION = "version"
"""The subject of the finding that says which server it is."""


class Accepted(Record, frozen=True, kw_only=True):
    """An accepted problem: the reason, and the server of which it is accepted, as `redis 7.0.15`."""

    reason: str
    server: str


def key_of_accepted(prefix: str) -> str:
    return f"{prefix}:let_pass"


def read_accepted(prefix: str) -> Operation[dict[str, Accepted]]:
    """Return what is accepted, by subject. One that cannot be read is not. One round trip."""
    [found] = yield [("HGETALL", key_of_accepted(prefix))]
    return decode_accepted(found)


def decode_accepted(found: Any) -> dict[str, Accepted]:
    """Return what is accepted, by subject, from the hash of it."""
    pairs = found.items() if isinstance(found, Mapping) else zip(found[::2], found[1::2], strict=True)
    accepted = {}
    for subject, value in pairs:
        if (known := decode_or_none(value, Accepted)) is not None:
            accepted[show_bytes(subject)] = known
    return accepted


def accept(prefix: str, subject: str, reason: str, findings: Iterable[Finding]) -> Operation[None]:
    """Accept a problem of these findings, as long as its server is the same version. One round trip."""
    value = msgspec.json.encode(Accepted(reason=reason, server=_servers(findings).get(_place(subject), "")))
    yield [("HSET", key_of_accepted(prefix), subject, value)]


def withdraw(prefix: str, subject: str) -> Operation[bool]:
    """Accept a problem no longer; return whether it was accepted. One round trip."""
    [removed] = yield [("HDEL", key_of_accepted(prefix), subject)]
    return bool(removed)


def apply(findings: Iterable[Finding], accepted: Mapping[str, Accepted]) -> list[Finding]:
    """Return the findings with accepted problems as notes that say why.

    >>> found = [
    ...     Finding(subject="version", ok=True, said="redis 7.0.15"),
    ...     Finding(subject="known flaws", ok=False, said="old", advice="upgrade"),
    ... ]
    >>> here, before = (Accepted(reason="mended", server=f"redis {each}") for each in ("7.0.15", "7.0.14"))
    >>> [each.said for each in apply(found, {"known flaws": here})]
    ['redis 7.0.15', 'old; accepted: mended']
    >>> [each.ok for each in apply(found, {"known flaws": before})]
    [True, False]
    """
    listed = list(findings)
    servers = _servers(listed)

    def judged(finding: Finding) -> Finding:
        known = accepted.get(finding.subject)
        if finding.ok or known is None or known.server != servers.get(_place(finding.subject), ""):
            return finding
        said = f"{finding.said}; accepted: {known.reason}"
        return msgspec.structs.replace(finding, ok=True, note=True, said=said, advice="")

    return [judged(finding) for finding in listed]


def _servers(findings: Iterable[Finding]) -> dict[str, str]:
    """Return which server is at each place: "" for the only one."""
    named = (each for each in findings if each.subject.partition(" at ")[0] == VERSION)
    return {_place(each.subject): each.said for each in named}


def _place(subject: str) -> str:
    return subject.partition(" at ")[2]

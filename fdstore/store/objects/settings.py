"""Where cold contents go, and when: settings of the operator, beside the ceilings in one hash.

    fdstore:limits    hash    cold -> s3://logs/fdstore, cold_after -> 24h, ...

`fdstore limits` sets them, workers and clients read them. The credentials of the object store are never here:
they come from the environment of each process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.msgspec_types import prepare
from fdstore.store.keys import TreeKeys
from fdstore.text.numbers import BYTE_UNITS, MAX_INTEGER, parse_number
from fdstore.text.quantities import DAY_S
from fdstore.wire.operation import Operation

SCHEMES = ("file", "s3", "gs", "az")

MAX_URL_CHARS = 1000

NONE = "none"

ENDED_TREE_AFTER_S = 3600.0
"""Contents of a tree whose processes have ended move at the latest after so many seconds without a read."""

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)?")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": float(DAY_S)}


class ColdSettings(msgspec.Struct, frozen=True):
    """The settings that hold: `url` is None if no content moves out, and `after_s` is None if none does any
    more although some are there."""

    url: str | None = None
    after_s: float | None = float(DAY_S)
    min_bytes: int = 128 * 1024
    mb_per_s: float = 50.0


prepare(ColdSettings)


class ColdSetting(msgspec.Struct, frozen=True):
    """One setting: what it `sets`, its `default` in words, and `parse`, which raises `InvalidArgument`."""

    sets: str
    default: str
    parse: Callable[[str, str], object]


def parse_url(name: str, value: str) -> str:
    """Return a valid URL of a place for objects.

    >>> parse_url("cold", "s3://logs/fdstore/")
    's3://logs/fdstore'
    """
    try:
        parts = urlsplit(value)
    except ValueError as error:  # brackets that hold no IPv6 address, or no pair of them
        raise InvalidArgument(name, f"{quoted(value)} is not a URL: {error}") from error
    problem, path = "", unquote(parts.path)
    if value.lower() == NONE:
        problem = f"it is unset by: fdstore limits unset {name}"
    elif parts.scheme not in SCHEMES:
        problem = f"{quoted(value)} is none of {', '.join(f'{each}://...' for each in SCHEMES)}"
    elif len(value) > MAX_URL_CHARS or not value.isprintable() or " " in value:
        problem = f"a URL of 1-{MAX_URL_CHARS} characters without blanks is needed"
    elif parts.username or parts.password or parts.query or parts.fragment or "@" in parts.netloc:
        problem = "credentials and options come from the environment of each process, not from the URL"
    elif parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        problem = f"{quoted(value)} names no absolute directory, as file:///srv/fdstore does"
    elif parts.scheme != "file" and not parts.netloc:
        problem = f"{quoted(value)} names no bucket"
    elif any(each in ("", ".", "..") for each in path[1:].rstrip("/").split("/") if path.strip("/")):
        problem = "a path without . and .. and without // is needed"
    elif parts.scheme == "file" and not path.strip("/"):
        problem = "a directory of its own is needed, not the root of all"
    elif not path.isprintable() or "\\" in path or "\ufffd" in path:
        problem = "a path of printable characters in UTF-8, without backslashes, is needed"
    if problem:
        raise InvalidArgument(name, problem)
    return value.rstrip("/") or value


def parse_duration(name: str, value: str) -> float | None:
    """Return a duration in seconds, None for "none".

    >>> parse_duration("cold_after", "1.5h"), parse_duration("cold_after", "none")
    (5400.0, None)
    """
    if value.lower() == NONE:
        return None
    found = _DURATION.fullmatch(value)
    if found is None:
        raise InvalidArgument(name, f"{quoted(value)} is not a time, as 90s, 30m, 24h or 7d, or {NONE}")
    return float(found[1]) * _UNITS_S[found[2] or "s"]


def parse_size(name: str, value: str) -> int:
    """Return a number of bytes.

    >>> parse_size("cold_min", "128KiB")
    131072
    """
    size = parse_number(value, BYTE_UNITS)
    if size is None or not 0 <= size <= MAX_INTEGER:
        raise InvalidArgument(name, f"{quoted(value)} is not a number of bytes, as 128KiB or 1MB")
    return int(size)


def parse_rate(name: str, value: str) -> float:
    """Return a positive number of megabytes a second.

    >>> parse_rate("cold_mb_per_s", "50")
    50.0
    """
    found = re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", value)
    if found is None or float(value) <= 0:
        raise InvalidArgument(name, f"{quoted(value)} is not a number of megabytes a second, above 0")
    return float(value)


COLD_SETTINGS = {
    "cold": ColdSetting("where contents go that nobody reads", "nowhere", parse_url),
    "cold_after": ColdSetting(
        "the time without a read after which a content moves there; less while Redis is nearly full",
        "24h; 1h if its tree ended",
        parse_duration,
    ),
    "cold_min": ColdSetting("the least content that moves", "128KiB", parse_size),
    "cold_mb_per_s": ColdSetting("megabytes a second that move at most", "50", parse_rate),
}
"""Each setting by its name."""

_FIELDS = {"cold": "url", "cold_after": "after_s", "cold_min": "min_bytes", "cold_mb_per_s": "mb_per_s"}


def parse_setting(name: str, value: str) -> object:
    """Return the value of a setting. Raises `InvalidArgument`."""
    return COLD_SETTINGS[name].parse(name, value)


def parse_settings(written: Mapping[str, str]) -> ColdSettings:
    """Return the settings in the hash of the ceilings. Raises `InvalidArgument`, which names the remedy."""
    values = {}
    for name, field in _FIELDS.items():
        if name in written:
            try:
                values[field] = parse_setting(name, written[name])
            except InvalidArgument as error:
                advice = f"the operator of this store can fix it: fdstore limits set {name} VALUE"
                raise InvalidArgument(f"setting {name}", f"{error.problem}; {advice}") from error
    return msgspec.convert(values, ColdSettings)


def written_settings(prefix: str) -> Operation[dict[str, str]]:
    """Return the settings that are set, as unparsed texts. One round trip."""
    [values] = yield [("HMGET", TreeKeys(prefix, "").ceilings, *COLD_SETTINGS)]
    return {
        name: value.decode("utf-8", "backslashreplace")
        for name, value in zip(COLD_SETTINGS, values, strict=True)
        if value is not None
    }


def read_settings(prefix: str) -> Operation[ColdSettings]:
    """Return the settings that hold. One round trip. Raises `InvalidArgument`."""
    return parse_settings((yield from written_settings(prefix)))

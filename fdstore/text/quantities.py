"""Format sizes, counts, durations and times for people: pure functions.

Numbers have commas between their groups of digits, on the terminal and in the inspector: these are ASCII, and
a number stays one word. Models read digits alone, which they copy into calls: `plain_count`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fdstore.model.records import ProcessRecord, TokenUsage

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
RELATIVE_FOR_S = 60 * DAY_S
"""Older times are shown as dates."""


def format_size(count: int) -> str:
    """Format a number of bytes.

    >>> format_size(999), format_size(12_345_678), format_size(999_999)
    ('999 B', '12.3 MB', '1.0 MB')
    """
    if count < 1000:
        return f"{count} B"
    value, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while value >= 999.95 and len(units) > 1:
        value /= 1000
        del units[0]
    return f"{value:.1f} {units[0]}"


def format_bound(count: int) -> str:
    """Format a bound on bytes in the unit in which it was set, if that is whole MiB or GiB.

    >>> format_bound(4 << 30), format_bound(512 << 20), format_bound(1_000_000_000), format_bound(0)
    ('4 GiB', '512 MiB', '1.0 GB', '0 B')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count and count % size == 0:
            return f"{count // size} {unit}"
    return format_size(count)


def format_number(value: int) -> str:
    """Format a number.

    >>> format_number(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def short_number(value: int) -> str:
    """Return a number of at most four characters and its unit.

    >>> short_number(999), short_number(12_345), short_number(1_200_000)
    ('999', '12.3k', '1.2M')
    """
    for unit_size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= unit_size:
            return f"{value / unit_size:.1f}".removesuffix(".0") + unit
    return str(value)


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun.

    >>> format_count(1, "line"), format_count(2000, "process", "processes")
    ('1 line', '2,000 processes')
    """
    return f"{format_number(count)} {noun if count == 1 else plural or noun + 's'}"


def plain_count(count: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun for models.

    >>> plain_count(1, "line"), plain_count(2000, "match", "matches")
    ('1 line', '2000 matches')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def format_costs(processes: Iterable[ProcessRecord]) -> str:
    """Format what processes have cost together, by currency; "" if none of them names a price, or no model
    has answered them.

    >>> from fdstore.model.records import ModelPrice, ProcessRecord
    >>> price = ModelPrice(input=3, output=15, currency="USD")
    >>> format_costs([ProcessRecord(id="a", state="exited", price=price, input_tokens=70_000)])
    '0.21 USD'
    >>> format_costs([ProcessRecord(id="a", state="ready", price=price)])
    ''
    """
    return format_sums(sum_costs(processes))


def sum_costs(processes: Iterable[ProcessRecord]) -> dict[str, float]:
    """Return what processes have cost together, by currency: those with a price that have used tokens."""
    sums: dict[str, float] = {}
    for process in processes:
        if process.price is not None and process.tokens:
            currency = process.price.currency
            sums[currency] = sums.get(currency, 0.0) + process.price.cost(process)
    return sums


def format_sums(sums: Mapping[str, float]) -> str:
    """Format amounts of money by currency.

    >>> format_sums({"USD": 0.21, "EUR": 12.0}), format_sums({})
    ('0.21 USD + 12.00 EUR', '')
    """
    return " + ".join(f"{format_amount(amount)} {currency}".strip() for currency, amount in sums.items())


def format_amount(amount: float) -> str:
    """Format an amount of money: small ones with more digits.

    >>> format_amount(12.345), format_amount(0.00123), format_amount(0.00002), format_amount(0)
    ('12.35', '0.0012', '<0.0001', '0.00')
    """
    if 0 < amount < 0.0001:
        return "<0.0001"
    return f"{amount:,.2f}" if amount >= 0.1 or not amount else f"{amount:.4f}"


def format_tokens(usage: TokenUsage) -> str:
    """Format the tokens sent, the share of them that the prompt cache had, and the tokens received.

    >>> from fdstore.model.records import TokenUsage
    >>> format_tokens(TokenUsage(input_tokens=9000, output_tokens=300, cache_read_tokens=8100))
    '9,000 in (90 % cached), 300 out'
    """
    if not usage.tokens:
        return "-"
    share = 100 * usage.cache_read_tokens // usage.input_tokens if usage.cache_read_tokens else 0
    cached = f" ({share} % cached)" if usage.cache_read_tokens else ""
    return f"{format_number(usage.input_tokens)} in{cached}, {format_number(usage.output_tokens)} out"


def precise_duration(seconds: float) -> str:
    """Format a duration in at most two units.

    >>> precise_duration(0.0123), precise_duration(4.25), precise_duration(75), precise_duration(7300)
    ('12 ms', '4.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < HOUR_S:
        return f"{int(seconds // MINUTE_S)} min {int(seconds % MINUTE_S)} s"
    if seconds < DAY_S:
        return f"{int(seconds // HOUR_S)} h {int(seconds % HOUR_S // MINUTE_S)} min"
    return duration(seconds)


def duration(seconds: float) -> str:
    """Format a duration in its largest unit.

    >>> duration(0.4), duration(90), duration(200_000)
    ('0 s', '1 min', '2 d')
    """
    if seconds < MINUTE_S:
        return f"{max(0, int(seconds))} s"
    for unit_s, name, limit_s in ((MINUTE_S, "min", HOUR_S), (HOUR_S, "h", DAY_S)):
        if seconds < limit_s:
            return f"{int(seconds / unit_s)} {name}"
    return f"{int(seconds / DAY_S)} d"


def moment(at_s: float) -> str:
    """Format a time as ISO 8601, in UTC.

    >>> moment(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(at_s: float, now_s: float) -> str:
    """Format the time since `at_s`, or the date if that is long ago.

    >>> ago(100, 280), ago(100, 100)
    ('3 min ago', 'now')
    """
    passed = now_s - at_s
    if passed >= RELATIVE_FOR_S:
        return moment(at_s)
    return f"{duration(passed)} ago" if passed >= 1 else "now"

"""The texts of the tasks: from Python's standard library, or generated from fixed seeds.

A generated text is what such a system prints, at its usual size, with one planted fact that the task asks
for.
"""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

FAILED_TEST = "tests/billing/test_invoices.py::test_total_of_a_credit_note"
FAILURE = "AssertionError: assert Decimal('-12.50') == Decimal('-12.49')"
BUILD_ERROR = "src/codec/frame.c:418:17: error: implicit declaration of function 'crc32c_extend'"
CAUSE = "redis.exceptions.ConnectionError: Error 111 connecting to cache-7.internal:6380. Connection refused."
SKU, SHELF = "KX-40917-B", "aisle 14, shelf 3c"
MENTIONED = "the retry budget of the ingest queue"

_PACKAGES_TEXT = """
auth billing catalog checkout feeds ingest mailer orders payments reports search shipping
"""
_PACKAGES = _PACKAGES_TEXT.split()
_WORDS_TEXT = """
account address amount archive balance batch buffer cache cart change channel client column
commit config cursor customer date delivery discount document draft event export field filter
header image import index invoice item journal key label ledger letter line list lock mail
message method notice number offer option order page parcel payment period price product profile
query queue rate record refund region report request result return role row rule session shard
shipment stock store stream supplier table task tax ticket token total transfer user value
version voucher warehouse window
"""
_WORDS = _WORDS_TEXT.split()


def filler(chance: random.Random, words: int) -> str:
    """Return words that mean nothing."""
    return " ".join(chance.choice(_WORDS) for _ in range(words))


@cache
def library(module: str) -> str:
    """Return the source of a module of the standard library."""
    return (Path(sysconfig.get_path("stdlib")) / f"{module}.py").read_text("utf-8")


@cache
def manual(chars: int) -> str:
    """Return that many characters of the Python reference, whole lines."""
    text = "\n\n".join(topics[name].strip() for name in sorted(topics, key=lambda each: -len(topics[each])))
    return text[: text.rfind("\n", 0, chars) + 1]


@cache
def ci_log() -> str:
    """Return 10 MB of a CI run: eight jobs of one matrix, of which one fails in one test."""
    chance = random.Random(11)
    lines: list[str] = []
    for job in range(8):
        version = f"3.{job + 7}"
        lines += _stamped(chance, job, _job(chance, version, fails=job == 2))
    return "\n".join(lines) + "\n"


def _stamped(chance: random.Random, job: int, lines: Iterator[str]) -> list[str]:
    second, stamped = 0.0, []
    for line in lines:
        second += chance.random() * 0.05
        hour, rest = divmod(int(second), 3600)
        stamped.append(f"2031-05-01T{8 + job + hour:02d}:{rest // 60:02d}:{rest % 60:02d}Z {line}")
    return stamped


def _job(chance: random.Random, version: str, *, fails: bool) -> Iterator[str]:
    yield f"##[group]Run tests (python {version})"
    for number in range(400):
        name = f"{chance.choice(_WORDS)}-{chance.choice(_WORDS)}"
        yield f"Collecting {name}=={number % 7}.{number % 13}.{number % 5}"
        yield f"  Downloading {name}-{number % 7}.{number % 13}.tar.gz ({chance.randrange(9, 900)} kB)"
    names = [
        f"tests/{chance.choice(_PACKAGES)}/test_{chance.choice(_WORDS)}s.py::"
        f"test_{chance.choice(_WORDS)}_of_a_{chance.choice(_WORDS)}_{number}"
        for number in range(12_300)
    ]
    names[6400] = FAILED_TEST
    for number, name in enumerate(names):
        outcome = "FAILED" if fails and name == FAILED_TEST else "PASSED"
        yield f"{name} {outcome} [{100 * number // len(names):3d}%]"
    if fails:
        yield "=================================== FAILURES ==================================="
        yield "    def test_total_of_a_credit_note(books):"
        yield ">       assert books.credit_note(12.495).total == Decimal('-12.49')"
        yield f"E       {FAILURE}"
        yield "=========================== short test summary info ============================"
        yield f"FAILED {FAILED_TEST} - {FAILURE}"
        yield f"================== 1 failed, {len(names) - 1} passed in 312.40s =================="
    else:
        yield f"======================= {len(names)} passed in 301.18s ======================="
    for package in _PACKAGES:
        for word in _WORDS[:60]:
            covered = chance.randrange(70, 101)
            yield f"src/{package}/{word}.py {chance.randrange(20, 900):10d} {covered:6d}%"
    yield "##[endgroup]"
    yield "Cleaning up orphan processes"


@cache
def server_log() -> str:
    """Return 5 MB of a web server's log with one chained traceback."""
    chance = random.Random(12)
    lines = []
    size, planted = 0, False
    while size < 5_000_000:
        if size > 3_100_000 and not planted:
            planted = True
            block = _TRACEBACK.splitlines()
        else:
            n, ms = chance.randrange(10**6), chance.randrange(2, 900)
            level = chance.choice(("INFO",) * 18 + ("DEBUG", "WARNING"))
            path = f"/api/{chance.choice(_PACKAGES)}/{n}"
            block = [
                f"2031-05-01 12:{n % 60:02d}:{ms % 60:02d},{n % 1000:03d} {level} GET {path} 200 {ms} ms"
            ]
        lines += block
        size += sum(map(len, block)) + len(block)
    return "\n".join(lines) + "\n"


_TRACEBACK = f"""\
2031-05-01 12:41:07,118 ERROR request 88213 failed
Traceback (most recent call last):
  File "/srv/shop/cache.py", line 212, in get
    return self._pool.execute("GET", key)
  File "/srv/shop/lib/redis/connection.py", line 377, in connect
    raise ConnectionError(self._error_message(e))
{CAUSE}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/shop/views.py", line 90, in basket
    basket = baskets.load(user)
  File "/srv/shop/baskets.py", line 31, in load
    return Basket.decode(cache.get(user.key))
TypeError: the JSON object must be str, bytes or bytearray, not NoneType
"""


@cache
def build_output(parts: int = 6) -> tuple[str, ...]:
    """Return the output of a build, in the parts of about 60 KB in which it comes. The fourth has the first
    error, and the build goes on with what does not depend on it."""
    chance = random.Random(13)
    made = []
    for part in range(parts):
        lines = []
        for number in range(520):
            source = f"src/{chance.choice(_PACKAGES)}/{chance.choice(_WORDS)}_{chance.choice(_WORDS)}.c"
            done = 100 * (part * 520 + number) // (parts * 520)
            flags = "-O2 -g -Wall -Wextra -fPIC -fstack-protector-strong -Iinclude"
            lines.append(f"[{done:3d}%] cc {flags} -c {source} -o build/{part:02d}{number:04d}.o")
            if part == 3 and number == 260:
                lines += [BUILD_ERROR, "  418 |         crc = crc32c_extend(crc, data, size);"]
                lines += ["      |               ^~~~~~~~~~~~~", "1 error generated."]
        made.append("\n".join(lines) + "\n")
    made[-1] += "make: *** [Makefile:88: all] Error 2\n"
    return tuple(made)


@cache
def orders() -> str:
    """Return 40 000 orders as CSV, 2.4 MB."""
    chance = random.Random(14)
    rows = ["order_id,date,customer,country,status,items,total"]
    for number in range(40_000):
        day = f"2031-{1 + number * 12 // 40_000:02d}-{1 + number % 28:02d}"
        country = chance.choice(("DE", "FR", "NO", "PL", "SE", "US"))
        status = chance.choice(("paid",) * 12 + ("shipped",) * 6 + ("refunded", "cancelled"))
        customer = f"{chance.choice(_WORDS)}.{chance.choice(_WORDS)}@example.org"
        items = chance.randrange(1, 9)
        total = chance.randrange(500, 90_000) / 100
        rows.append(f"{100_000 + number},{day},{customer},{country},{status},{items},{total:.2f}")
    return "\n".join(rows) + "\n"


@cache
def inventory() -> str:
    """Return the 3 MB JSON of an API, on one line."""
    chance = random.Random(15)
    items = []
    for number in range(14_000):
        sku = SKU if number == 9100 else f"{chance.choice('ABCDEFGH')}{chance.choice('KLMN')}-{number:05d}-A"
        shelf = SHELF if number == 9100 else f"aisle {chance.randrange(60)}, shelf {chance.randrange(9)}"
        items.append(
            {
                "sku": sku,
                "location": shelf,
                "name": f"{chance.choice(_WORDS)} {chance.choice(_WORDS)} {chance.choice(_WORDS)}",
                "stock": chance.randrange(900),
                "price": {"amount": chance.randrange(99, 99_999), "currency": "EUR"},
                "tags": chance.sample(_WORDS, 4),
                "supplier": {"id": chance.randrange(400), "lead_days": chance.randrange(40)},
            }
        )
    return json.dumps({"generated": "2031-05-01", "items": items}, separators=(",", ":"))


@cache
def issues() -> str:
    """Return 200 hits of a search in an issue tracker as JSON lines, 1 MB; one mentions `MENTIONED`."""
    chance = random.Random(16)
    lines = []
    for number in range(200):
        words = [chance.choice(_WORDS) for _ in range(700)]
        if number == 137:
            words[350:350] = MENTIONED.split()
        issue = {"number": 4000 + number, "state": chance.choice(("open", "closed")), "body": " ".join(words)}
        lines.append(json.dumps(issue))
    return "\n".join(lines) + "\n"


SERVICES = tuple(f"{package}-{zone}" for package in _PACKAGES[:10] for zone in ("eu", "us", "asia", "test"))


@cache
def metrics(service: str) -> str:
    """Return the metrics of a service, 30 KB, in the form that Prometheus reads."""
    chance = random.Random(f"metrics of {service}")
    lines = []
    for _ in range(16):
        name = f"{chance.choice(_WORDS)}_{chance.choice(_WORDS)}_seconds"
        lines += [f"# HELP {name} Time of each {name.partition('_')[0]}.", f"# TYPE {name} histogram"]
        for bound in range(28):
            count = chance.randrange(10**6)
            lines.append(f'{name}_bucket{{service="{service}",le="{bound / 8:.3f}"}} {count}')
    middle = len(lines) // 2 // 30 * 30
    lines[middle:middle] = [
        "# HELP http_request_seconds Time of each request.",
        "# TYPE http_request_seconds summary",
        f'http_request_seconds{{service="{service}",quantile="0.5"}} 0.0{chance.randrange(10, 99)}',
        f'http_request_seconds{{service="{service}",quantile="0.99"}} {p99_of(service)}',
    ]
    return "\n".join(lines) + "\n"


def p99_of(service: str) -> str:
    """Return the planted latency of a service in seconds."""
    return f"{random.Random(f'p99 of {service}').randrange(100, 9000) / 1000:.3f}"


@cache
def order(number: int) -> str:
    """Return the record of an order with its events as indented JSON, 12 KB."""
    chance = random.Random(f"order {number}")
    events = [
        {
            "at": f"2031-05-{1 + number % 28:02d}T{event % 24:02d}:{chance.randrange(60):02d}:00Z",
            "kind": chance.choice(_WORDS),
            "by": f"{chance.choice(_WORDS)}@example.org",
            "note": " ".join(chance.choice(_WORDS) for _ in range(8)),
        }
        for event in range(75)
    ]
    record = {"order": number, "carrier": carrier_of(number), "events": events}
    return json.dumps(record, indent=1)


def carrier_of(number: int) -> str:
    """Return the carrier of an order."""
    return f"carrier-{random.Random(f'carrier of {number}').randrange(100, 999)}"


REGIONS = tuple(f"region {number}" for number in range(1, 11))


@cache
def report(region: str) -> str:
    """Return the report of an agent about a region, 48 KB: its conclusion, then what it found."""
    chance = random.Random(f"report of {region}")
    sections: list[str] = []
    while sum(map(len, sections)) < 48_000:
        words = " ".join(chance.choice(_WORDS) for _ in range(90))
        sections.append(f"## {chance.choice(_WORDS).title()} {len(sections) + 1}\n\n{words.capitalize()}.\n")
    return f"# Report on {region}\n\nConclusion: {conclusion(region)}\n\n" + "\n".join(sections)


def conclusion(region: str) -> str:
    """Return the conclusion of the report about a region."""
    chance = random.Random(f"conclusion of {region}")
    change = chance.randrange(-90, 90) / 10
    return f"returns of {chance.choice(_WORDS)}s in {region} changed by {change:+.1f} % after the new rule."


_SUBJECTS = ("系统", "管理员", "用户", "服务器", "数据库", "供应商", "客户", "项目经理", "值班工程师")
_VERBS = ("检查了", "更新了", "记录了", "重新启动了", "确认了", "提交了", "删除了", "备份了")
_OBJECTS = ("昨天的日志", "新的配置文件", "所有未完成的订单", "网络连接", "付款记录", "访问权限", "季度报告")
_ENDINGS = ("，并通知了相关部门", "，但是没有发现问题", "，因此推迟了发布", "", "，预计下周完成")


@cache
def minutes() -> str:
    """Return the minutes of a meeting in Chinese, 15 KB in UTF-8."""
    chance = random.Random(17)
    lines = ["# 会议纪要"]
    while sum(len(line.encode()) + 1 for line in lines) < 15_000:
        sentences = (
            f"{chance.choice(_SUBJECTS)}{chance.choice(_VERBS)}{chance.choice(_OBJECTS)}"
            f"{chance.choice(_ENDINGS)}。"
            for _ in range(6)
        )
        lines.append("".join(sentences))
    return "\n".join(lines) + "\n"


@cache
def newer(module: str) -> tuple[str, tuple[str, ...]]:
    """Return a later version of a module of the standard library, and its changed lines."""
    lines = library(module).splitlines(keepends=True)
    chance = random.Random(18)
    candidates = [
        number
        for number, line in enumerate(lines)
        if line.strip().startswith("return ") and len(line) > 30 and lines.count(line) == 1
    ]
    changed = []
    for number in sorted(chance.sample(candidates, 5)):
        lines[number] = lines[number].rstrip("\n") + "  # changed\n"
        changed.append(lines[number].strip())
    return "".join(lines), tuple(changed)

"""The findings of `fdstore doctor`: problems and notes, each with a remedy."""

from __future__ import annotations

import pytest

from fdstore.store.doctor import check, safety
from fdstore.store.doctor.safety import Finding, Way
from fdstore.wire.store_url import parse_store_url

HERE = Way(leaves_machine=False, has_password=False, has_tls=False)
AWAY = Way(leaves_machine=True, has_password=False, has_tls=False)
LOGGED = {"aof_enabled": "1"}


def mark(finding: Finding) -> str:
    assert finding.said
    assert finding.advice or (finding.ok and not finding.note)
    return "problem" if not finding.ok else "note" if finding.note else "ok"


@pytest.mark.parametrize(
    ("url", "way"),
    [
        ("unix:///run/redis.sock", HERE),
        ("redis://localhost/0", HERE),
        ("redis://127.8.0.1", HERE),
        ("redis://[::1]:6379", HERE),
        ("redis://:secret@db.example", Way(leaves_machine=True, has_password=True, has_tls=False)),
        ("rediss://db.example", Way(leaves_machine=True, has_password=False, has_tls=True)),
        ("redis://10.0.0.7", AWAY),
        ("sentinel://127.0.0.1,10.0.0.7/main", AWAY),
        ("redis+cluster://127.0.0.1:7000,127.0.0.1:7001", HERE),
        ("rediss+cluster://ann:secret@a,b", Way(leaves_machine=True, has_password=True, has_tls=True)),
    ],
)
def test_a_url_says_whether_it_leaves_the_machine_and_what_protects_it(url: str, way: Way) -> None:
    assert safety.way_to(parse_store_url(url)) == way


def test_beyond_this_machine_a_password_and_tls_are_needed() -> None:
    safe = Way(leaves_machine=True, has_password=True, has_tls=True)

    assert [mark(safety.password(way)) for way in (HERE, AWAY, safe)] == ["ok", "problem", "ok"]
    assert [mark(safety.encryption(way)) for way in (HERE, AWAY, safe)] == ["ok", "problem", "ok"]


@pytest.mark.parametrize("option", ["ssl_cert_reqs=none", "ssl_check_hostname=false"])
def test_tls_whose_certificate_is_not_checked_is_a_problem_beyond_this_machine(option: str) -> None:
    away = safety.encryption(safety.way_to(parse_store_url(f"rediss://db.example?{option}")))
    here = safety.encryption(safety.way_to(parse_store_url(f"rediss://localhost?{option}")))

    assert (mark(away), mark(here)) == ("problem", "ok")
    assert all(f"the certificate is not checked ({option})" in each.said for each in (away, here))


def test_loading_a_truncated_log_is_a_problem_if_the_append_only_file_is_on() -> None:
    yes, no = {"aof-load-truncated": "yes"}, {"aof-load-truncated": "no"}

    assert mark(safety.torn_log(LOGGED, yes)) == "problem"
    assert "CONFIG SET aof-load-truncated no" in safety.torn_log(LOGGED, yes).advice
    assert mark(safety.torn_log(LOGGED, no)) == "ok"
    assert mark(safety.torn_log({}, yes)) == "ok"
    assert mark(safety.torn_log(LOGGED, {})) == "note"


def test_the_possible_data_loss_of_a_power_cut_is_reported() -> None:
    marks = [
        mark(safety.log_writes(LOGGED, {"appendfsync": how} if how else {}))
        for how in ("always", "everysec", "no", "")
    ]

    assert marks == ["ok", "note", "problem", "note"]
    assert mark(safety.log_writes({}, {})) == "ok"


def test_no_memory_limit_is_worth_a_note() -> None:
    assert mark(safety.memory_limit({"maxmemory": "0"})) == "note"
    assert mark(safety.memory_limit({"maxmemory": "1000000"})) == "ok"


@pytest.mark.parametrize(
    ("name", "flawed", "mended"),
    [
        ("redis", ["6.2.14", "6.2.19", "7.0.15", "7.2.10", "7.4.5", "8.0.3", "8.2.1"], "6.2.20 7.2.11 7.4.6"),
        ("redis", [], "8.0.4 8.2.2 8.4.0 9.0.0"),
        ("valkey", ["7.2.10", "8.0.5", "8.1.3"], "7.2.11 8.0.6 8.1.4 9.0.0"),
    ],
)
def test_a_version_with_known_flaws_is_a_problem_where_others_can_reach_it(
    name: str, flawed: list[str], mended: str
) -> None:
    def info(version: str) -> dict[str, str]:
        # Valkey also reports the version of Redis that it is compatible with
        return (
            {"redis_version": "7.2.4", "valkey_version": version}
            if name == "valkey"
            else {"redis_version": version}
        )

    for version in flawed:
        assert mark(safety.known_flaws(info(version), AWAY)) == "problem", version
        here = safety.known_flaws(info(version), HERE)
        assert mark(here) == "note"
        assert "unless your distribution has backported the fix" in here.advice
    for version in mended.split():
        assert mark(safety.known_flaws(info(version), AWAY)) == "ok", version


def test_the_release_of_the_same_line_is_advised() -> None:
    assert "upgrade to 7.2.11 or later" in safety.known_flaws({"redis_version": "7.2.1"}, HERE).advice
    assert "7.0 got no fix" in safety.known_flaws({"redis_version": "7.0.15"}, HERE).said


def test_valkey_is_named_with_its_own_version() -> None:
    valkey = {"redis_version": "7.2.4", "valkey_version": "9.1.2", "server_name": "valkey"}

    assert check.version(valkey).said == "Valkey 9.1.2"
    assert check.version({"redis_version": "7.0.15"}).said == "Redis 7.0.15"

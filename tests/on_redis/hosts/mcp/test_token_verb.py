"""`fdstore token`: tokens are shown once, listed without their text, and removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fdstore.cli import cli
from fdstore.client import Store
from fdstore.errors import StoreFull
from fdstore.store.tokens import add_token, find_token, new_secret

Run = Callable[..., Result]


@pytest.fixture
def token(redis_url: str) -> Run:
    """`fdstore token ...`"""

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, ["token", *words, "--url", redis_url])

    return run


def test_a_token_is_shown_once_and_stored_as_its_hash(token: Run, store: Store, execute: Any) -> None:
    added = token("add", "ada", "--process", "triage", "--allow", "write,read", "--expires", "2h")

    secret = added.stdout.splitlines()[0]
    found = store.run(find_token(store.prefix, secret))
    assert found is not None
    assert (found.name, found.process, found.permissions) == ("ada", "triage", ("read", "write"))
    assert found.expires_at == found.created_at + 7200
    stored = b"".join(execute("HGETALL", "fdstore:logins") + execute("HGETALL", "fdstore:token_uses"))
    assert secret.encode() not in stored
    assert secret not in token("ls").output + token("ls", "--json").output


def test_a_token_that_cannot_be_read_hides_and_hinders_no_other(
    token: Run, store: Store, execute: Any
) -> None:
    token("add", "ada", "--process", "triage")
    execute("HSET", "fdstore:logins", "beef", '{"name": "odd", "expires_at": 1e300}')
    execute("HSET", "fdstore:token_uses", execute("HKEYS", "fdstore:logins")[0], "yesterday")

    listed, added, removed = token("ls"), token("add", "bob", "--process", "triage"), token("rm", "ada")
    by_hash = token("rm", "beef")

    assert "ada" in listed.stdout
    assert "the token with the hash beef cannot be read" in listed.stderr
    assert [each.exit_code for each in (listed, added, removed, by_hash)] == [0, 0, 0, 0]
    assert [each["name"] for each in map(json.loads, token("ls", "--json").stdout.splitlines())] == ["bob"]


def test_a_token_that_expires_beyond_all_calendars_is_refused(token: Run) -> None:
    refused = token("add", "ada", "--process", "triage", "--expires", "99999999d")

    assert refused.exit_code == 1
    assert "after the year 9999" in refused.stderr
    assert token("ls").exit_code == 0


def test_a_token_for_a_process_that_is_not_there_names_those_that_are(token: Run, store: Store) -> None:
    store.process("triage")

    right, wrong = (token("add", name, "--process", name) for name in ("triage", "triag"))

    assert "no process" not in right.stderr
    assert (wrong.exit_code, len(wrong.stdout.splitlines())) == (0, 1)
    assert "triag" in wrong.stderr
    assert "triage" in wrong.stderr
    assert "the first call with this token creates it" in wrong.stderr


def test_a_token_for_a_child_that_is_not_there_says_who_creates_it(token: Run, store: Store) -> None:
    store.process("triage")

    said = token("add", "ada", "--process", "triage.7").stderr

    assert "triage.7 does not exist" in said
    assert "its parent creates it" in said
    assert "the first call" not in said


def test_tokens_are_listed_with_their_last_use_and_removed(token: Run, store: Store) -> None:
    token("add", "ada", "--process", "triage")
    secret = json.loads(token("add", "bob", "--process", "triage.1", "--tree", "--json").stdout)["token"]
    store.run(find_token(store.prefix, secret))

    ada, bob = [json.loads(line) for line in token("ls", "--json").output.splitlines()]
    shown = token("ls").output

    assert ada["used_at"] is None
    assert bob["used_at"] >= int(bob["created_at"])
    assert (bob["process"], bob["whole_tree"], bob["permissions"]) == ("triage.1", True, ["read"])
    assert "triage.1*" in shown
    assert token("rm", "bob").exit_code == 0
    assert store.run(find_token(store.prefix, secret)) is None
    assert "ada" in token("rm", "bob").output


def test_an_expired_token_is_listed_as_one(token: Run, store: Store) -> None:
    store.run(add_token(store.prefix, new_secret(), "late", "t", frozenset({"read"}), expires_s=-1.0))
    token("add", "ada", "--process", "t", "--expires", "2h")

    late, ada = sorted(token("ls").output.splitlines()[1:], reverse=True)

    assert "(expired)" in late
    assert "(expired)" not in ada


def test_what_is_missing_is_told_by_its_name(redis_url: str) -> None:
    said = CliRunner().invoke(cli, ["token", "--url", redis_url]).output

    assert "PROC" not in said
    assert "{add|ls|rm}" in said or "add" in said


def test_mistakes_are_told(token: Run) -> None:
    token("add", "ada", "--process", "triage")

    assert [
        token(*words).exit_code
        for words in (
            *(("add", "ada", "--process", "triage"), ("add", "a b", "--process", "triage")),
            *(("add", "bob", "--process", "Triage"), ("rm", "bob")),
            *(("add", "bob", "--process", "triage", "--expires", "0s"),),
            *(("add", "bob"), ("ls", "bob"), ("rm",), ("ls", "--process", "triage")),
            ("add", "bob", "--process", "triage", "--allow", "all"),
        )
    ] == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]


def test_a_token_works_on_a_full_store(token: Run, store: Store, fill_redis: Callable[[], None]) -> None:
    secret = json.loads(token("add", "ada", "--process", "triage", "--json").stdout)["token"]
    fill_redis()

    assert store.run(find_token(store.prefix, secret)) is not None
    with pytest.raises(StoreFull):
        store.process("new")

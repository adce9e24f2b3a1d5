"""`--help` and `--version`."""

from __future__ import annotations

import pytest

import fdstore
from fdstore.cli import MEANT, VERBS
from tests.acceptance.conftest import imported_by


def test_help_names_every_verb_and_imports_nothing_slow(command):
    out, imported = imported_by(command, "--help")

    listed = {line.split()[0] for line in out.decode().split("\n") if line.startswith("  ") and line.split()}
    assert {name for section in VERBS.values() for name in section} <= listed
    packages = {name.partition(".")[0] for name in imported}
    assert "click" in packages
    assert packages.isdisjoint({"redis", "celery", "anthropic", "msgspec", "asyncio"})


def test_help_begins_where_a_newcomer_begins(command):
    listed = command("--help").out.splitlines()

    def section(title, rows):
        begins = listed.index(f"{title}:")
        return [line.split()[0] for line in listed[begins + 1 : begins + 1 + rows]]

    assert section("Start here", 6) == ["demo", "ask", "init", "run", "up", "ui"]
    assert section("More", 4) == ["gc", "redis-server", "bench", "completion"]
    assert listed.index("Start here:") < listed.index("Content:")
    assert not any(line.startswith("  holders") for line in listed)


@pytest.mark.parametrize(("word", "verb"), MEANT.items())
def test_a_word_of_another_program_names_the_verb_that_does_it(command, word, verb):
    ended = command(word, "triage")

    assert ended.code == 2
    assert f"there is no `fdstore {word}`; use `fdstore {verb}`" in ended.err


def test_version_prints_the_version_of_the_package(command):
    assert command("--version").out == f"fdstore {fdstore.__version__}\n"

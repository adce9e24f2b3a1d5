"""`--help` and `--version`."""

from __future__ import annotations

import fdstore
from fdstore.cli import VERBS
from tests.acceptance.conftest import imported_by


def test_help_names_every_verb_and_imports_nothing_slow(command):
    out, imported = imported_by(command, "--help")

    listed = {line.split()[0] for line in out.decode().split("\n") if line.startswith("  ") and line.split()}
    assert {name for section in VERBS.values() for name in section} <= listed
    packages = {name.partition(".")[0] for name in imported}
    assert "click" in packages
    assert packages.isdisjoint({"redis", "celery", "anthropic", "msgspec", "asyncio"})


def test_version_prints_the_version_of_the_package(command):
    assert command("--version").out == f"fdstore {fdstore.__version__}\n"

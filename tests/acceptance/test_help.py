"""`--help` and `--version`."""

from __future__ import annotations

import subprocess
import sys

import fdstore
from fdstore.cli import VERBS
from tests.children import Child
from tests.waiting import PATIENCE_S


def test_help_names_every_verb_and_imports_nothing_slow(command):
    with Child(
        [sys.executable, "-X", "importtime", "-m", "fdstore", "--help"],
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        out, trace = process.communicate(timeout=PATIENCE_S)

    listed = {line.split()[0] for line in out.decode().split("\n") if line.startswith("  ") and line.split()}
    assert {name for section in VERBS.values() for name in section} <= listed
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in trace.decode().split("\n")}
    assert "click" in imported
    assert imported.isdisjoint({"redis", "celery", "anthropic", "msgspec", "asyncio"})


def test_version_prints_the_version_of_the_package(command):
    assert command("--version").out == f"fdstore {fdstore.__version__}\n"

"""`--help` and `--version`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fdstore
from fdstore.cli import VERBS, load_verb
from tests.acceptance.verbs import HERE, WITHOUT_STORE
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


@pytest.mark.parametrize("name", HERE)
def test_the_help_of_a_verb_names_its_options(command, name):
    ended = command(name, "--help")

    assert ended.code == 0
    assert ended.lines[2].strip()
    for parameter in load_verb(name).params:
        for option in parameter.opts:
            assert option.startswith("-") is False or option in ended.out
    common = {"--help"} if name in WITHOUT_STORE else {"--url", "--prefix", "--help"}
    assert common <= set(ended.out.replace(",", " ").split())


def test_version_prints_the_version_of_the_package(command):
    assert command("--version").out == f"fdstore {fdstore.__version__}\n"

"""`fdstore limits`: the operator's ceilings and the limits of a tree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import fdstore
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.store.objects.settings import COLD_SETTINGS
from fdstore.store.trees.ceilings import CEILINGS

Execute = Callable[..., Any]


@pytest.fixture
def limits(redis_url: str) -> Callable[..., Result]:
    """`fdstore limits ...`"""

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, ["limits", *words, "--url", redis_url])

    return run


def test_the_help_lists_every_ceiling(limits: Callable[..., Result]) -> None:
    shown = limits("--help").output

    assert [name for name in CEILINGS if name not in shown] == []
    assert "half of maxmemory" in shown


def test_a_ceiling_is_set_shown_and_unset(limits: Callable[..., Result], store: Store) -> None:
    store.process("triage").create("x" * 1000)

    result = limits("set", "tree_live", "16")
    shown = {each["name"]: each for each in map(json.loads, limits("--json").output.splitlines())}
    gone = limits("unset", "tree_live", "--json")

    assert result.output == "tree_live is 16 now; 1 tree changed\n"
    assert list(shown) == [*CEILINGS, *COLD_SETTINGS]
    assert [shown["tree_live"][name] for name in ("value", "set", "asked")] == [16, True, 64]
    assert (shown["trees"]["used"], shown["bytes"]["used"], shown["bytes"]["value"]) == (1, 1000, None)
    assert json.loads(gone.output)["ceiling"]["value"] is None
    assert fdstore.TreeLimits() == store.tree("triage").limits


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["set", "tree_live", "0"], "invalid_argument: tree_live: '0' is not a whole number", 1),
        (["set", "tree_height", "3"], "invalid_argument: name: there is no ceiling 'tree_height'", 1),
        (["unset", "x"], "invalid_argument", 1),
        (["set", "tree_live"], "fdstore limits set NAME VALUE", 2),
        (["show", "nobody"], "not_found", 1),
    ],
)
def test_an_invalid_ceiling_is_reported_and_changes_nothing(
    limits: Callable[..., Result], execute: Execute, words: list[str], said: str, code: int
) -> None:
    result = limits(*words)

    assert (result.exit_code, said in result.output + result.stderr) == (code, True)
    assert execute("EXISTS", "fdstore:limits") == 0


def test_the_limits_of_a_tree_are_shown_with_its_usage(
    limits: Callable[..., Result], redis_url: str, store: Store
) -> None:
    limits("set", "tree_fds", "7")
    store.process("triage").create("x" * 1000)

    lines = limits("show", "triage", "--json").output.splitlines()
    shown = {each["name"]: each for each in map(json.loads, lines)}
    ps = CliRunner().invoke(cli, ["ps", "triage", "--url", redis_url]).output
    status = CliRunner().invoke(cli, ["status", "--url", redis_url]).output

    assert (shown["tree_fds"]["value"], shown["tree_fds"]["used"]) == (7, 1)
    assert shown["tree_bytes"]["used"] == 1000
    assert "fds 1 of 7" in ps
    assert "tree_fds 7" in status


def test_run_reports_lowered_limits_only_if_the_program_names_them(
    limits: Callable[..., Result], redis_url: str, execute: Execute, tmp_path: Path
) -> None:
    program = tmp_path / "greedy.toml"
    program.write_text('[model]\nname = "any"\n[limits]\ntree_bytes = 9000000000\ntree_live = 3\n')
    for name, value in (("tree_bytes", "1GB"), ("tree_depth", "2"), ("tree_live", "5")):
        limits("set", name, value)

    ran = CliRunner().invoke(cli, ["run", str(program), "-p", "go", "--detach", "--url", redis_url])
    execute("UNLINK", *execute("KEYS", "fdq:*"))  # its wake-up

    warned = [line for line in ran.stderr.splitlines() if "warning" in line]
    assert ran.exit_code == 0
    assert warned == [
        "fdstore: warning: [limits] tree_bytes 9.0 GB is more than this store allows: 1.0 GB holds "
        "(fdstore limits)"
    ]

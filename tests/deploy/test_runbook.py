"""Every command, option, verb and variable that the runbook and the example name exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import anthropic

from fdstore.cli import HIDDEN, VERBS
from fdstore.model.providers import PROVIDERS
from fdstore.setup.settings import VARIABLES
from tests.deploy.deployed import DEPLOY, RUNBOOK


def test_every_variable_of_the_example_is_read_by_the_code():
    example = (DEPLOY / "fdstore.env.example").read_text()
    ours = {each.name for variables in VARIABLES.values() for each in variables.values()}
    sdk = Path(anthropic.Anthropic.__init__.__code__.co_filename).read_text("utf-8")
    theirs = set(re.findall(r"environ\.get\(\"(ANTHROPIC_\w+)\"", sdk))
    theirs |= {name for row in PROVIDERS.values() for name in row.keys}

    named = set(re.findall(r"^#?([A-Z][A-Z0-9_]+)=", example, re.M))

    assert named - ours - theirs == set()
    assert {name for name in ours if name.startswith("FDSTORE_")} <= named


def test_every_verb_and_section_that_the_runbook_names_exists():
    code = re.findall(r"^```\w+\n(.*?)^```", RUNBOOK, re.M | re.S) + re.findall(r"`([^`\n]+)`", RUNBOOK)
    verbs = set(re.findall(r"\bfdstore ([a-z]+)\b", "\n".join(re.sub(r"#.*", "", part) for part in code)))
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^##+ (.+)$", RUNBOOK, re.M)
    }

    assert verbs - {verb for section in (*VERBS.values(), HIDDEN) for verb in section} == set()
    assert set(re.findall(r"\]\(#([^)]+)\)", RUNBOOK)) <= headings


def test_the_runbook_lists_the_redis_command_with_the_most_time_last():
    [line] = re.findall(r"^rc INFO commandstats .*$", RUNBOOK, re.M)
    stats = "".join(
        f"cmdstat_{name}:calls={calls},usec={usec},usec_per_call=1.00\r\n"
        for name, calls, usec in (("get", 9, 1000), ("hget", 70, 99), ("evalsha", 8, 20000))
    )

    found = subprocess.run(
        ["bash", "-c", f"rc() {{ cat; }}\n{line}"], input=stats, capture_output=True, text=True, check=True
    )

    assert re.findall(r"cmdstat_(\w+)", found.stdout) == ["hget", "get", "evalsha"]


def test_every_copy_of_the_data_in_the_runbook_is_readable_by_its_owner_only():
    installed = re.findall(r"^install .*(?:rdb|fdstore-redis)$", RUNBOOK, re.M)

    assert installed
    assert all(re.search(r" -m [67]00 ", line) for line in installed)
    assert all("cp -a " in line for line in re.findall(r"^cp .*", RUNBOOK, re.M))
    assert "\nUMask=0077\n" in (DEPLOY / "fdstore-redis.service").read_text()

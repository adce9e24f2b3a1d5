"""Stores of all releases are read and continued, and what is written now has what the last release reads.

`exchange.py` writes a small store. `keys/VERSION.json` has its keys as that release wrote them; `make
release-keys` replaces the newest file until its version is released, see CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.client import Store
from fdstore.store.doctor.audit import Damage, check_tree, named_trees
from fdstore.store.record_format import FORMAT
from fdstore.store.views import worker_registry
from fdstore.testing import ScriptedModel, say
from tests.children import Child
from tests.on_redis.releases import exchange
from tests.on_redis.releases.stored_keys import Execute, keys_of, restore
from tests.thorough import thorough
from tests.waiting import wait_until

KEYS = Path(__file__).with_name("keys")
RELEASES = sorted(file.stem for file in KEYS.glob("*.json"))
ROOT = Path(__file__).parents[3]
PYTHON = os.environ.get("FDSTORE_LAST_RELEASE", sys.executable)
"""A Python with the last release; without one, this version stands for it."""


def saved(version: str) -> dict[str, Any]:
    """Return what the file of a release says."""
    found: dict[str, Any] = json.loads((KEYS / f"{version}.json").read_text("ascii"))
    return found


def fields_of(keys: dict[str, list[Any]]) -> dict[str, set[str]]:
    """Return the type and the fields of each kind of key; numbers and names of contents are all the same."""
    found: dict[str, set[str]] = {}
    for key, (kind, *values) in keys.items():
        fields = values[::2] if kind == "hash" else []
        if re.search(r":(fds|pages|index|names)$", key):  # the fields are names and numbers
            fields = []
        found.setdefault(re.sub(r"[0-9]+", "N", key), {kind}).update(fields)
    return found


def damages(store: Store) -> list[Damage]:
    """Return what `fdstore doctor --deep` finds."""
    trees = store.run(named_trees(store.prefix))
    return [damage for tree in trees for damage in store.run(check_tree(tree))]


def in_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("version", RELEASES)
def test_a_store_of_a_release_reads_as_it_did_there(version: str, store: Store, execute: Execute) -> None:
    release = saved(version)
    restore(release["keys"], execute)

    assert in_json(exchange.read(store)) == release["read"]
    assert store.survey().unreadable == []


@pytest.mark.parametrize("version", RELEASES)
def test_a_store_of_a_release_is_continued_without_damage(
    version: str, store: Store, execute: Execute
) -> None:
    restore(saved(version)["keys"], execute)

    exchange.go_on(store)

    assert damages(store) == []
    store.drop_tree("release", kill=True)
    assert [key for key in keys_of(execute) if "{release}" in key] == []


@pytest.mark.parametrize("version", RELEASES)
def test_what_is_written_now_has_all_that_a_release_of_this_format_reads(
    version: str, store: Store, execute: Execute
) -> None:
    """Else an older worker or client would misread it: then raise `record_format.FORMAT`."""
    theirs = saved(version)["keys"]
    exchange.write(store)
    ours = fields_of(keys_of(execute))
    formats = {values[values.index("format") + 1] for values in theirs.values() if "format" in values}

    if formats == {str(FORMAT)}:
        lost = {key: fields - ours.get(key, set()) for key, fields in fields_of(theirs).items()}
        assert {key: fields for key, fields in lost.items() if fields} == {}
    else:
        assert max(map(int, formats)) < FORMAT


def test_this_version_or_its_release_to_be_has_its_keys() -> None:
    assert RELEASES
    assert fdstore.__version__ in RELEASES


# --- another release in a process of its own


def other(verb: str, url: str, **options: Any) -> Child[str]:
    """Run a verb of `exchange.py` with the last release."""
    script = Path(exchange.__file__)
    return Child(
        [PYTHON, "-P", str(script), verb, url], text=True, stdout=subprocess.PIPE, cwd="/", **options
    )


@pytest.mark.thorough("interpreters of both versions")
def test_each_of_two_versions_reads_and_continues_what_the_other_one_wrote(
    store: Store, redis_url: str
) -> None:
    with other("write", redis_url) as writer:
        assert writer.wait() == 0
    ours = in_json(exchange.read(store))
    with other("read", redis_url) as reader:
        theirs = json.loads(reader.communicate()[0])
    with other("continue", redis_url) as more:
        assert more.wait() == 0

    assert ours == theirs
    assert damages(store) == []


def test_two_versions_follow_one_stream_at_the_same_time(store: Store, redis_url: str) -> None:
    with other("stream", redis_url, stdin=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        follower = store.process("live").follow("fd:1")
        assert next(iter(follower)) == "begun\n"
        writer.communicate("\n")
        assert "".join(follower) == "done\n"
    ours = store.process("live").open_stream("ours")
    ours.write("x")
    with other("follow", redis_url) as reader:
        assert reader.communicate()[0] == "begun\ndone\n"
    ours.end()


@pytest.mark.thorough("their stores are tested with each other")
@pytest.mark.parametrize(
    ("of_worker", "of_client"),
    [(sys.executable, PYTHON), *thorough("the other direction", (PYTHON, sys.executable))],
    ids=["client", "worker"],
)
def test_a_worker_of_one_version_runs_an_agent_that_a_client_of_the_other_one_starts(
    of_worker: str, of_client: str, store: Store, redis_url: str, tmp_path: Path
) -> None:
    program = '[model]\nname = "any"\n[prompt]\nsystem = "Be brief."\n'
    (tmp_path / "solo.toml").write_text(program)
    log = (tmp_path / "log").open("wb")
    with log, ScriptedModel([say("Done.")]) as model:
        environment = {**os.environ, **model.environ, "FDSTORE_URL": redis_url}
        options: dict[str, Any] = {"env": environment, "cwd": tmp_path, "stderr": log}
        with Child([of_worker, "-P", "-m", "fdstore", "worker"], stdout=log, **options) as worker:
            wait_until(lambda: store.run(worker_registry.workers(store.prefix)))
            command = [of_client, "-P", "-m", "fdstore", "run", "solo.toml", "-p", "Go."]
            with Child(command, text=True, stdout=subprocess.PIPE, **options) as client:
                said, _ = client.communicate()
            worker.end()

    assert "Done." in said, (tmp_path / "log").read_text()

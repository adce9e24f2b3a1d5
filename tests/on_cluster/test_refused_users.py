"""A Cluster that refuses a user is no Cluster that is lost: it is said at once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import fdstore
from fdstore.errors import FDStoreError
from tests.on_cluster.cluster import Cluster


@pytest.fixture
def guarded(cluster: Cluster) -> Iterator[Cluster]:
    """The Cluster, with a user who may not read."""
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "ann", "on", ">topsecret", "~*", "+@all", "-hget")
    yield cluster
    for node in cluster.nodes:
        node.ask("ACL", "DELUSER", "ann")


def work(url: str) -> None:
    with fdstore.connect(url) as store:
        store.process("triage").create("x")
        store.process("triage").read("fd:1")


@pytest.mark.parametrize(
    ("login", "said"), [("ann:topsecret", "'hget' command"), ("ann:topsecrex", "invalid username-password")]
)
def test_a_user_whom_a_cluster_refuses_is_told_so_at_once(guarded: Cluster, login: str, said: str) -> None:
    url = guarded.url.replace("://", f"://{login}@")
    began = time.monotonic()

    with pytest.raises(FDStoreError, match=said) as caught:
        work(url)

    assert caught.value.type == "permission_error"
    assert time.monotonic() - began < 5
    assert "topsecre" not in str(caught.value)

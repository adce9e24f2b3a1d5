"""A Cluster that refuses a user raises a permission error immediately, not after retries."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import fdstore
from fdstore.errors import FDStoreError
from tests.on_cluster.cluster import Cluster
from tests.waiting import stretched


@pytest.fixture
def cluster_with_user(cluster: Cluster) -> Iterator[Cluster]:
    """The Cluster, with a user without permission to read."""
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
def test_a_user_refused_by_a_cluster_gets_an_immediate_error(
    cluster_with_user: Cluster, login: str, said: str
) -> None:
    url = cluster_with_user.url.replace("://", f"://{login}@")
    began = time.monotonic()

    with pytest.raises(FDStoreError, match=said) as caught:
        work(url)

    assert caught.value.type == "permission_error"
    assert time.monotonic() - began < stretched(5)
    assert "topsecre" not in str(caught.value)

"""Cold contents in a Cluster, where trees and settings are on different nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

import fdstore
from fdstore.store.cold.comparing import find_garbage
from fdstore.store.cold.moving import move_due
from fdstore.store.cold.unneeded import count_due
from fdstore.store.trees import ceilings

pytest.importorskip("obstore")

TEXT = "".join(f"line {number} größer\n" for number in range(5000))


def test_contents_of_trees_on_all_nodes_move_out_and_come_back(redis_url: str, tmp_path: Path) -> None:
    with fdstore.connect(redis_url) as store:
        for name, value in (("cold", f"file://{tmp_path}/o"), ("cold_after", "0s"), ("cold_min", "0")):
            store.run(ceilings.put(store.prefix, name, value))
        trees = [f"tree-{number}" for number in range(6)]
        for name in trees:
            store.process(name).create(TEXT)

        moved = move_due(store)
        assert (moved.contents, moved.problem) == (6, "")
        for name in trees:
            proc = store.process(name)
            assert proc.read("fd:1", mode="line", start=4000, count=1).text == "line 3999 größer\n"
            assert proc.read("fd:1", read_all=True).text == TEXT
            assert proc.read_bytes("fd:1", 50_000, 9) == TEXT.encode()[50_000:50_009]  # the third read
            assert store.tree(name).cold_fds == 0

        assert move_due(store).contents == 6
        for name in trees:
            store.drop_tree(name)
        assert store.run(count_due(store.prefix)) == 6
        assert move_due(store).deleted == 6
        assert list(find_garbage(store)) == []

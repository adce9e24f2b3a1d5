"""Names that would give the record of a root the key of something else of its tree."""

from __future__ import annotations

import pytest

from fdstore.errors import InvalidArgument
from fdstore.integrations.process_name import process_name_of_thread
from fdstore.store.keys import RESERVED, ProcessKeys, TreeKeys, check_root, is_root, process_keys
from fdstore.store.process_names import process_name_of


def test_the_keys_of_a_tree_are_reserved() -> None:
    """One more key of a tree is one more reserved name."""
    tree = TreeKeys("fdstore", "triage")
    properties = [
        name for name, kind in vars(TreeKeys).items() if hasattr(kind, "__get__") and name[0] != "_"
    ]
    keys = [getattr(tree, name) for name in properties]
    own = [key for key in keys if isinstance(key, str) and key.startswith(f"{tree.record}:")]

    assert {key.rpartition("}:")[2] for key in own if key.count(":") == 2} == RESERVED


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_reserved_name_is_refused_and_never_derived(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{name} is a key of every tree; choose another name"):
        check_root(name)

    assert not is_root(name.encode())
    assert is_root(process_name_of(f"/home/ada/{name}").encode())
    assert is_root(process_name_of_thread(name).encode())


def test_no_other_name_gives_a_process_a_key_of_its_tree() -> None:
    for name in ("op", "search", "earlier", "trees", "triage"):
        process, tree = process_keys("fdstore", check_root(name)), TreeKeys("fdstore", name)
        of_process = {getattr(process, each) for each in ("record", "fds", "names", "calls", "journal")}

        assert isinstance(process, ProcessKeys)
        assert of_process.isdisjoint({tree.words, tree.earlier_numbers, tree.staged, tree.answer("0a")})

"""A flag that permits what cannot be taken back is True or False: a text such as "no" is true to Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument

FLAGS: dict[str, Callable[[Store, Process, Path, Any], object]] = {
    "exist_ok": lambda store, proc, file, flag: proc.export("name:new", file, exist_ok=flag),
    "create": lambda store, proc, file, flag: proc.export("name:new", file, create=flag),
    "replace": lambda store, proc, file, flag: proc.rename("new", "old", replace=flag),
    "kill": lambda store, proc, file, flag: store.drop_tree(proc.id, kill=flag),
    "code_may_create": lambda store, proc, file, flag: Toolset(proc, code_may_create=flag),
    "wait_for_workers": lambda store, proc, file, flag: Toolset(proc, wait_for_workers=flag),
    "ignore_case": lambda store, proc, file, flag: proc.search("name:new", "X", ignore_case=flag),
}


@pytest.mark.parametrize("flag", ["no", "false", "", 1, 0, None, [False]])
@pytest.mark.parametrize("name", FLAGS)
def test_what_is_no_flag_permits_nothing(
    store: Store, proc: Process, tmp_path: Path, name: str, flag: object
) -> None:
    proc.put("old", "old")
    proc.put("new", "new")
    file = tmp_path / "file.txt"
    file.write_text("old")

    with pytest.raises(InvalidArgument, match=f"{name}: must be True or False"):
        FLAGS[name](store, proc, file, flag)

    assert file.read_text() == "old"
    assert [proc.read(f"name:{key}").text for key in ("old", "new")] == ["old", "new"]

"""A name of a class means one thing in the product."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]

SAME_ON_PURPOSE = {"FdstorePlugin", "FdstoreTools"}
"""Classes of adapters: users of a framework import one of them."""


def modules() -> list[Path]:
    """Return the modules of the product, without the blocking twins of awaiting ones, and without
    `fdstore.testing`, which has the words of the Messages API."""
    found = [path for folder in ("fdstore", "workers") for path in (ROOT / folder).rglob("*.py")]
    return [
        path for path in found if not {"_sync", "_sync.py", "testing"} & set(path.relative_to(ROOT).parts)
    ]


def test_no_two_classes_share_a_name() -> None:
    homes = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}

    assert set(shared) - SAME_ON_PURPOSE == set(), shared

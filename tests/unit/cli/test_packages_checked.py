"""Each package that doctor checks is named with the extra that brings it."""

from __future__ import annotations

from importlib import metadata

import pytest

from fdstore.cli import doctor_checks


@pytest.mark.parametrize(
    ("package", "extra"),
    [("mcp", "mcp"), ("anthropic", "agents"), ("pydantic-monty", "python"), ("starlette", "web")],
)
def test_a_package_that_is_missing_is_installed_by_its_own_extra(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = metadata.version

    def without(name: str) -> str:
        if name == package:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)

    [said] = [each.said for each in doctor_checks.packages() if each.subject == f"package {package}"]

    assert said.startswith(f"not installed; install it with: pip install '.[{extra}]'")

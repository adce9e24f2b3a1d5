"""The checks of `fdstore doctor`. Each yields findings and changes nothing.

The required packages are read from the metadata of this installation, which is their only list.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from fdstore.cli.session import CliSession
from fdstore.errors import FDStoreError, StoreRefused
from fdstore.local.data_directory import problem_of
from fdstore.local.redis_conf import binary_version, find_binary
from fdstore.model.providers import PROVIDERS
from fdstore.setup import settings
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.doctor.accepted import Accepted, apply, read_accepted
from fdstore.store.doctor.check import examine
from fdstore.store.doctor.safety import Finding
from fdstore.store.views.health import beside, read_cold_place, read_health
from fdstore.text.quantities import format_size
from fdstore.wire._sync.cluster import make_runner
from fdstore.wire._sync.runner import Runner

LOW_DISK_BYTES = 500_000_000
_REQUIREMENT = re.compile(r"([A-Za-z0-9_-]+)(\[[^]]*\])?([^;]*)(?:;.*extra == [\"']([\w-]+)[\"'])?")
_BOUND = re.compile(r"(>=|<)\s*([0-9.]+)")


def check_everything(session: CliSession) -> Iterator[Finding]:
    """Yield all findings, in the order of the report."""
    yield Finding(subject="python", ok=True, said=f"{platform.python_version()} on {platform.system()}")
    yield from packages()
    yield from http_requests()
    url = session.chosen_url
    if url is None:
        yield data_directory(settings.read().data_dir)
        yield from embedded(session)
    else:
        yield from store(url, session.chosen_prefix)


def packages() -> Iterator[Finding]:
    """Check every package that fdstore and its extras require."""
    try:
        required = metadata.requires("fdstore") or []
    except metadata.PackageNotFoundError:
        advice = f"install it: {how_to_install()}"
        yield Finding(subject="fdstore", ok=False, said="runs from a folder, not installed", advice=advice)
        return
    yield Finding(subject="fdstore", ok=True, said=metadata.version("fdstore"))
    found = [each.groups() for each in map(_REQUIREMENT.match, required) if each]
    usual = {name: bounds for name, _, bounds, extra in found if extra in (None, "all")}
    sizes = Counter(extra for *_, extra in found)
    missing: list[tuple[str, str]] = []
    told = set()
    # the smallest extra that brings a package alone is its own; the others have it for what they need, or
    # together with an extra of it
    for name, _, bounds, extra in sorted(
        found, key=lambda each: (each[3] is not None, each[1] is not None, sizes[each[3]])
    ):
        if extra == "all" or name in told:  # that extra only combines the others
            continue
        if usual.get(name, bounds) != bounds:  # a framework wants it too, by bounds of its own
            continue
        if name in usual or is_installed(name):  # else that of a framework which is not used here
            told.add(name)
            if extra is None or is_installed(name):
                yield package(name, bounds, extra)
            else:
                missing.append((extra, name))
    if missing:
        yield not_installed(missing)


def not_installed(missing: list[tuple[str, str]]) -> Finding:
    """Return a finding that lists packages of extras that are not installed. It is never a problem."""
    extras: dict[str, list[str]] = {}
    for extra, name in sorted(missing):
        extras.setdefault(extra, []).append(name)
    named = ", ".join(f"[{extra}] ({', '.join(names)})" for extra, names in extras.items())
    advice = f"install what you use: {how_to_install(','.join(extras))}"
    return Finding(subject="extras", ok=True, said=f"not installed: {named}; {advice}")


def is_installed(name: str) -> bool:
    """Return whether a package is installed, in any version."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def package(name: str, bounds: str, extra: str | None) -> Finding:
    """Check the version of one package."""
    advice = how_to_install(extra, "--upgrade")
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(subject=f"package {name}", ok=False, said="missing", advice=advice)
    fits = all(
        (_numbers(version) >= _numbers(bound)) == (comparison == ">=")
        for comparison, bound in _BOUND.findall(bounds)
    )
    text = version if fits else f"{version}, but {bounds.strip()} is required"
    return Finding(subject=f"package {name}", ok=fits, said=text, advice="" if fits else advice)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def http_requests() -> Iterator[Finding]:
    """Check that proxies and certificates of the environment can be used: a problem if the model needs them,
    else a note, since no other verb does."""
    if not is_installed("httpx2"):
        return
    from fdstore.http.client import environment_problems, needs_environment

    env = os.environ
    with_key = [row for row in PROVIDERS.values() if any(env.get(name) for name in row.keys)]
    is_problem = any(needs_environment(env.get(row.url) or row.own_url) for row in with_key)
    for said in environment_problems():
        said, _, advice = said.partition("; ")
        yield Finding(
            subject="http requests", ok=not is_problem, note=not is_problem, said=said, advice=advice
        )


def data_directory(directory: Path) -> Finding:
    """Check that the embedded server can write its data and has disk space."""
    existing = next(path for path in (directory, *directory.parents) if os.path.exists(path))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding(
            subject="data directory",
            ok=False,
            said=f"{directory} cannot be written",
            advice=f"make {existing} a directory that you can write to, or set FDSTORE_DATA_DIR",
        )
    if found := problem_of(directory):
        problem, advice = found
        return Finding(subject="data directory", ok=False, said=f"{directory}: {problem}", advice=advice)
    free = shutil.disk_usage(existing).free
    text = f"{directory}, {format_size(free)} free"
    if free < LOW_DISK_BYTES:
        advice = "free disk space, or set FDSTORE_DATA_DIR to another disk"
        return Finding(subject="data directory", ok=False, said=text, advice=advice)
    return Finding(subject="data directory", ok=True, said=text)


def embedded(session: CliSession) -> Iterator[Finding]:
    """Check the embedded server, without starting it."""
    try:
        binary = find_binary(settings.read().data_dir)
    except FDStoreError as error:
        can_start = False
        yield Finding(subject="redis-server", ok=False, said=str(error))
    else:
        can_start = True
        version = ".".join(map(str, binary_version(binary)))
        yield Finding(subject="redis-server", ok=True, said=f"{binary} {version}")
    status = session.embedded_server().status()
    if status.running:
        yield from store(status.url, session.chosen_prefix)
    elif can_start:
        yield Finding(subject="store", ok=True, said="not running; the first command starts it")


def store(url: str, prefix: str) -> Iterator[Finding]:
    """Check that a store answers, the settings on which the safety of content depends, and whether its
    workers get on with their work. Problems of settings that the operator has accepted are notes."""
    try:
        runner = make_runner(url)
        try:
            runner.reach()
            findings = runner.run(examine(runner.place))
            accepted = _accepted(runner, prefix)
            health = beside(_health(runner, prefix), findings)
        finally:
            runner.close()
    except FDStoreError as error:
        yield Finding(subject="store", ok=False, said=str(error))
        return
    yield Finding(subject="store", ok=True, said=f"{runner.where} answers: {runner.place.described}")
    yield from apply(findings, accepted)
    yield from health


def _health(runner: Runner, prefix: str) -> list[Finding]:
    try:
        return [*runner.run(read_health(prefix)), *runner.run(read_cold_place(prefix))]
    except FDStoreError as error:  # a node that is away, or a user who may not read the records
        may_not = isinstance(error, StoreRefused)
        return [Finding(subject="workers", ok=may_not, note=may_not, said=f"not known: {error}")]


def _accepted(runner: Runner, prefix: str) -> dict[str, Accepted]:
    try:
        return runner.run(read_accepted(prefix))
    except FDStoreError:  # a user who may not read the key, or a damaged one
        return {}

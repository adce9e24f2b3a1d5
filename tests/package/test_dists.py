"""The contents of the wheel, the sdist and their metadata."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from readme_renderer.markdown import render

from tests.package.conftest import REPOSITORY, Dists, build, tracked


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as opened:
        [name] = [name for name in opened.namelist() if name.endswith("/METADATA")]
        return message_from_bytes(opened.read(name))


def links(wheel: Path) -> list[str]:
    """Return where the links and pictures of the long description lead, as an index shows it."""
    shown = render(metadata(wheel).get_payload())
    assert shown, "the README cannot be rendered"
    return re.findall(r'(?:href|src)="([^"]*)"', shown)


@pytest.mark.parametrize("kind", ["dists", "published"])
def test_twine_accepts_the_wheel_and_the_sdist(kind, request):
    dists: Dists = request.getfixturevalue(kind)

    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", dists.wheel, dists.sdist], check=True)


def test_the_wheel_has_no_defect_that_check_wheel_contents_knows(dists):
    options = ["--toplevel", "fdstore,fdstore_workers"]

    subprocess.run([sys.executable, "-m", "check_wheel_contents", *options, dists.wheel], check=True)


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(dists):
    expected = {name.removeprefix("workers/") for name in tracked("fdstore", "workers/fdstore_workers")}

    found = {name for name in names(dists.wheel) if ".dist-info/" not in name}

    assert found == expected
    assert any(name.endswith(".lua") for name in found)
    assert {"fdstore/py.typed", "fdstore_workers/py.typed"} <= found
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in names(dists.wheel))


def test_the_sdist_has_every_file_of_the_repository(dists):
    with tarfile.open(dists.sdist) as opened:
        found = {name.partition("/")[2] for name in opened.getnames()}

    assert found == {*tracked(), "PKG-INFO"}


def test_a_wheel_that_is_built_of_the_sdist_is_the_same(published, tmp_path):
    with tarfile.open(published.sdist) as opened:
        opened.extractall(tmp_path, filter="data")

    build(tmp_path / published.sdist.name.removesuffix(".tar.gz"), tmp_path, "--wheel")

    [wheel] = tmp_path.glob("*.whl")
    assert names(wheel) == names(published.wheel)
    assert metadata(wheel).as_string() == metadata(published.wheel).as_string()


def test_without_an_address_of_the_repository_no_link_is_dead(dists):
    assert [link for link in links(dists.wheel) if not re.match("https?://|#", link)] == []
    assert "Project-URL" not in metadata(dists.wheel)


def test_with_an_address_of_the_repository_relative_links_lead_there(published):
    found = links(published.wheel)

    version = metadata(published.wheel)["Version"]
    beginning = re.compile(f"{REPOSITORY}/(?:blob|raw)/v{version}/")
    ours = [beginning.sub("", link) for link in found if beginning.match(link)]
    assert ours
    root = Path(__file__).parents[2]
    assert [path for path in ours if not (root / path.partition("#")[0]).exists()] == []
    assert [link for link in found if not re.match("https?://|#", link)] == []
    urls = dict(each.split(", ") for each in metadata(published.wheel).get_all("Project-URL", []))
    assert urls.keys() == {"Homepage", "Documentation", "Changelog", "Issues"}


def test_only_what_runs_agents_or_workers_asks_for_celery(dists):
    found = metadata(dists.wheel)
    extras = found.get_all("Provides-Extra", [])
    required = [Requirement(each) for each in found.get_all("Requires-Dist", [])]

    def asks(extra: str) -> bool:
        return any(
            one.name == "celery" or (one.name == "fdstore" and any(map(asks, one.extras)))
            for one in required
            if one.marker is None or one.marker.evaluate({"extra": extra})
        )

    assert not asks("")
    assert [extra for extra in extras if asks(extra)] == ["agents", "all"]


def test_each_dependency_has_a_lowest_and_a_highest_version(dists):
    by_calendar = {"fsspec"}  # no release of it is announced as incompatible

    for each in map(Requirement, metadata(dists.wheel).get_all("Requires-Dist", [])):
        operators = {one.operator for one in each.specifier}
        assert operators in ({">=", "<"}, {"=="}) or each.name in by_calendar | {"fdstore"}, str(each)

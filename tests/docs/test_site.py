"""The built documentation is whole and self-contained: links lead somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import json
import re

from tests.docs.site import ROOT, SITE, is_external, page_of, pages


def test_every_internal_link_and_anchor_of_the_site_exists():
    broken = []
    for path, page in pages().items():
        if path.name == "404.html":
            continue  # its links are absolute: it is shown for any path
        for link in page.links:
            if is_external(link):
                continue
            file, anchor = page.target(link)
            known = pages().get(file)
            if not file.is_file() or (anchor and known is not None and anchor not in known.anchors):
                broken.append(f"{path.relative_to(SITE)}: {link}")

    assert sum(len(page.links) for page in pages().values()) > 1000
    assert not broken


def test_nothing_is_loaded_from_another_host():
    outside = {f"{page.path.relative_to(SITE)}: {each}" for page in pages().values() for each in page.loads}
    in_styles = {
        f"{file.relative_to(SITE)}: {url}"
        for file in SITE.rglob("*.css")
        for url in re.findall(r"(?:url\(|@import )['\"]?((?:https?:)?//[^)'\"]+)", file.read_text("utf-8"))
    }

    assert outside
    assert not {each for each in outside if is_external(each.partition(": ")[2])}
    assert not in_styles


def test_everything_that_pages_load_is_in_the_site():
    missing = [
        f"{path.relative_to(SITE)}: {each}"
        for path, page in pages().items()
        for each in page.loads
        if path.name != "404.html" and not page.target(each)[0].is_file()
    ]

    assert not missing


def test_the_search_index_is_in_the_site_and_finds_pages():
    index = json.loads((SITE / "search" / "search_index.json").read_text("utf-8"))

    found = {each["location"] for each in index["docs"] if "open_stream" in each["text"] + each["title"]}

    assert any(each.startswith("reference/python-") for each in found)
    assert list((SITE / "assets" / "javascripts" / "workers").glob("search.*.js"))


def test_every_page_of_docs_is_in_the_site():
    sources = [file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")]

    assert len(sources) > 20
    assert all(page_of(source).text for source in sources)


def test_links_to_files_of_the_repository_are_shown_as_their_paths():
    found = []
    for source in (ROOT / "docs").rglob("*.md"):
        name = source.relative_to(ROOT / "docs").as_posix()
        for target in re.findall(r"\]\(((?:\.\./)+[^)#\s]+)", source.read_text("utf-8")):
            file = (source.parent / target).resolve()
            if not file.is_relative_to(ROOT / "docs"):
                assert file.exists(), f"docs/{name}: {target}"
                found.append((name, file.relative_to(ROOT).as_posix()))

    assert len(found) > 5
    assert not [(name, path) for name, path in found if path not in page_of(name).text]

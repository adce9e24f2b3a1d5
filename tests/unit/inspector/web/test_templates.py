"""The templates of pages and of pages to keep."""

from __future__ import annotations

from fdstore.inspector.web.rendering import page_templates
from fdstore.inspector.web.run_export import run_templates
from fdstore.inspector.web.run_links import RunLinks
from fdstore.text.redaction import Redactor


def test_a_page_to_keep_compiles_no_template_again() -> None:
    used = page_templates().get_template("run.html").root_render_func.__code__

    links = [RunLinks(tree, [], Redactor([])) for tree in ("one", "two")]
    kept = [run_templates(each).get_template("run.html") for each in links]

    assert [each.root_render_func.__code__ is used for each in kept] == [True, True]
    assert [each.globals["links"] for each in kept] == links

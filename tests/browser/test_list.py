"""The list of trees: its filters apply at once, its headings sort, its times are local."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from fdstore.client import Store
from fdstore.store.processes import processes
from tests.browser.conftest import OpenPage
from tests.on_redis.inspector.journals import SHORT, converse, failed_child, ready_child


def make_trees(store: Store) -> None:
    store.process("build-1").create("x" * 5000)
    store.run(processes.end(store.process("build-2").handle, "failed", reason="out of memory"))
    store.process("notes").create("x")


def test_filters_apply_while_they_are_changed(open_page: OpenPage, store: Store) -> None:
    make_trees(store)
    page = open_page("/")
    rows = page.locator("table.trees tbody tr")

    page.locator("#search").press_sequentially("buil")
    expect(rows).to_have_count(2)
    expect(page.locator("#search")).to_be_focused()
    expect(page.locator("#search")).to_have_value("buil")
    assert page.url.endswith("/?q=buil&sort=used")

    page.get_by_label("State").select_option("failed")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("out of memory")
    expect(page.locator("#json")).to_have_attribute("href", re.compile(r"q=buil&state=failed"))

    page.reload()
    expect(rows).to_have_count(1)
    expect(page.get_by_label("State")).to_have_value("failed")


def test_a_filtered_list_stays_live(open_page: OpenPage, store: Store) -> None:
    make_trees(store)
    page = open_page("/")
    page.locator("#search").fill("build")
    rows = page.locator("table.trees tbody tr")
    expect(rows).to_have_count(2)

    store.process("build-3")
    expect(rows).to_have_count(3)
    store.process("other")
    store.process("build-4")
    expect(rows).to_have_count(4)
    expect(page.locator("#tree-other")).to_have_count(0)


def test_the_list_is_as_wide_as_the_window(open_page: OpenPage, store: Store) -> None:
    make_trees(store)
    for number in range(3):
        ready_child(store.process("notes"))
        failed_child(store.process("notes"), f"{number} too long " * 9)
    page = open_page("/")
    for width in (760, 1024, 1180, 1440):
        page.set_viewport_size({"width": width, "height": 760})

        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('.wide-list').scrollWidth") <= 1440


def test_a_reason_has_at_most_two_lines_and_its_last_word_is_whole(open_page: OpenPage, store: Store) -> None:
    long, short = store.process("long"), store.process("short")
    store.run(processes.end(long.handle, "failed", reason="incomprehensible circumstances " * 9))
    store.run(processes.end(short.handle, "failed", reason="out of memory"))
    page = open_page("/")

    heights = {
        name: page.locator(f"#tree-{name} .clamp").evaluate(
            "each => Math.round(each.clientHeight / parseFloat(getComputedStyle(each).lineHeight))"
        )
        for name in ("long", "short")
    }
    # where a line is broken there is a blank, so no word is in two lines
    broken = page.locator("#tree-long .clamp").evaluate(
        """each => {
          const text = each.firstChild, range = document.createRange(), found = new Set();
          let top = null;
          for (let at = 0; at < text.length; at++) {
            range.setStart(text, at); range.setEnd(text, at + 1);
            const now = range.getBoundingClientRect().top;
            if (top !== null && now > top + 4) found.add(text.data[at - 1]);
            top = now;
          }
          return [...found];
        }"""
    )

    assert heights == {"long": 2, "short": 1}
    assert broken == [" "]


def test_a_bar_leads_to_its_step(open_page: OpenPage, store: Store) -> None:
    converse(store.process("triage"), *SHORT)
    page = open_page("/tree/triage")

    page.get_by_role("link", name="search_web, failed").focus()  # it took no time, so it has no width
    page.keyboard.press("Enter")

    expect(page.locator("#detail h3")).to_contain_text("search_web")
    expect(page.locator("#output")).to_contain_text("no such host")


def test_a_bar_of_what_is_in_progress_leads_to_its_process(open_page: OpenPage, store: Store) -> None:
    child = ready_child(store.process("triage"))
    page = open_page("/tree/triage")

    page.get_by_role("link", name=f"{child.id}: waits for a worker").click()

    expect(page.locator("h1")).to_have_text(f"Process {child.id}")
    expect(page.locator("#pane")).to_be_visible()


def test_times_are_local_and_utc_is_in_their_titles(open_page: OpenPage, store: Store) -> None:
    store.process("triage")
    created_at = store.tree("triage").created_at
    page = open_page("/tree/triage", timezone_id="Asia/Kolkata")
    stamp = page.locator("dl.tiles time[data-stamp]").first

    text = page.evaluate(
        "at => new Date(at * 1000).toLocaleString('sv-SE', {timeZone: 'Asia/Kolkata'})", created_at
    )
    expect(stamp).to_have_text(text)
    expect(stamp).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\dT[\d:]+Z$"))
    expect(page.locator("#zone")).to_have_text(re.compile("Asia/(Kolkata|Calcutta)"))

    store.process("triage").create("new data")
    expect(page.locator("dl.tiles")).to_contain_text("1 content")
    expect(stamp).to_have_text(text)

"""The page of a descriptor in a real browser: scroll, jump, search, toggles, keys."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import OpenPage
from tests.browser.descriptors.shown import BIG_LINES, HOSTILE, Inspected, check_text, first_line
from tests.on_redis.inspector.test_descriptor_download import png


def test_the_end_of_a_large_text_is_reached_and_scrolling_back_loads_what_is_before(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1"))
    expect(page.locator("#L1")).to_be_visible()

    page.keyboard.press("G")
    expect(page.locator(f"#L{BIG_LINES}")).to_be_in_viewport()
    expect(page).to_have_url(re.compile(r"\?page=\d+$"))
    page.locator("#reader .text").hover()
    for _ in range(12):
        page.mouse.wheel(0, -2500)
        page.wait_for_timeout(30)
    check_text(page)
    assert BIG_LINES - 3000 < first_line(page) < BIG_LINES - 600

    page.keyboard.press("g")
    expect(page.locator("#L1")).to_be_in_viewport()
    for _ in range(12):
        page.mouse.wheel(0, 2500)
        page.wait_for_timeout(30)
    check_text(page)
    assert 600 < first_line(page) < 3000


def test_a_jump_to_a_line_shows_it_and_its_url_can_be_shared(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1"))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))

    page.keyboard.press(":")
    page.keyboard.type("345,678-345,680")
    page.keyboard.press("Enter")

    expect(page.locator("#L345678")).to_be_in_viewport()
    assert len(requests) <= 4
    expect(page.locator(".row.on")).to_have_count(3)
    expect(page).to_have_url(re.compile(r"\?lines=345678-345680$"))
    check_text(page)
    again = open_page(page.url)
    expect(again.locator("#L345678")).to_be_in_viewport()
    expect(again.locator(".row.on")).to_have_count(3)
    page.go_back()
    expect(page.locator("#L1")).to_be_in_viewport()
    by_hash = open_page(inspected.fd("1#L123456"))
    expect(by_hash.locator("#L123456")).to_be_in_viewport()
    expect(by_hash.locator("#L123456")).to_have_class(re.compile("on"))


def test_the_rail_goes_anywhere(open_page: OpenPage, inspected: Inspected) -> None:
    page = open_page(inspected.fd("1"))
    rail = page.locator(".rail").bounding_box()
    assert rail is not None

    page.mouse.move(rail["x"] + 7, rail["y"] + 10)
    page.mouse.down()
    page.mouse.move(rail["x"] + 7, rail["y"] + rail["height"] / 2, steps=8)
    expect(page.locator(".rail .tip")).to_contain_text("page")
    page.mouse.up()

    page.wait_for_function("() => descriptor.scroller.seeking === false")
    assert abs(first_line(page) - BIG_LINES / 2) < BIG_LINES / 20
    check_text(page)


def test_a_search_runs_in_steps_over_the_whole_text_and_its_hits_are_links(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1"))

    page.keyboard.press("/")
    page.keyboard.type("ERROR")
    page.keyboard.press("Enter")

    expect(page.locator(".hits .summary")).to_have_text("10 lines")
    expect(page.locator("#L50000")).to_be_in_viewport()
    expect(page.locator("#L50000 mark")).to_have_text("ERROR")
    page.keyboard.press("n")
    expect(page.locator("#L100000 mark")).to_be_in_viewport()
    page.keyboard.press("N")
    page.keyboard.press("N")
    expect(page.locator("#L500000 mark")).to_be_in_viewport()
    page.locator(".hits li").nth(3).click()
    expect(page.locator("#L200000 mark")).to_be_in_viewport()
    shared = open_page(page.url)
    expect(shared.locator("#L200000 mark")).to_be_in_viewport()
    expect(shared.locator(".hits .summary")).to_have_text("10 lines")
    page.locator(".hits .close").click()
    expect(page.locator("#hits")).to_be_hidden()


def test_of_two_jumps_the_later_one_stays(open_page: OpenPage, inspected: Inspected) -> None:
    """Regression test: the text of the earlier jump, if it came later, replaced that of the later one."""
    page = open_page(inspected.fd("1?q=ERROR"))
    expect(page.locator("#L50000 mark")).to_be_in_viewport()
    expect(page.locator(".hits .summary")).to_have_text("10 lines")
    held: list[Route] = []
    page.route("**/window.json*", lambda route: route.continue_() if held else held.append(route))

    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(page.locator("#L150000 mark")).to_be_in_viewport()
    with page.expect_response("**/window.json*"):
        held[0].continue_()
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")

    expect(page.locator("#L150000 mark")).to_be_in_viewport()


def test_a_jump_that_is_answered_late_does_not_replace_the_start_of_the_text(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1"))
    expect(page.locator("#L1")).to_be_visible()
    held: list[Route] = []
    page.route("**/window.json?*go=*", lambda route: held.append(route))

    page.locator("#go").fill("345678")
    with page.expect_request("**/window.json?*go=*"):
        page.keyboard.press("Enter")
    page.locator("#reader .text").focus()
    page.keyboard.press("g")
    with page.expect_response("**/window.json?*go=*"):
        held[0].continue_()
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")

    expect(page.locator("#L1")).to_be_in_viewport()
    assert page.url == inspected.fd("1")


def test_going_back_keeps_the_url_while_its_text_is_loaded(open_page: OpenPage, inspected: Inspected) -> None:
    """Regression test: the URL became that of the page that was still shown, and stayed so."""
    page = open_page(inspected.fd("1?lines=200000"))
    expect(page.locator("#L200000")).to_be_in_viewport()
    page.locator("#go").fill("345678")
    page.keyboard.press("Enter")
    expect(page.locator("#L345678")).to_be_in_viewport()
    held: list[Route] = []
    page.route("**/window.json?*lines=200000*", lambda route: held.append(route))

    page.evaluate("history.back()")
    page.evaluate("document.querySelector('#reader .text').scrollBy(0, 3000)")
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")
    assert page.url.endswith("?lines=200000")
    held[0].continue_()

    expect(page.locator("#L200000")).to_be_in_viewport()
    assert page.url.endswith("?lines=200000")


def test_the_link_to_the_data_is_of_what_is_shown(open_page: OpenPage, inspected: Inspected) -> None:
    page = open_page(inspected.fd("1"))

    page.locator("#go").fill("345678")
    page.keyboard.press("Enter")

    expect(page.locator("#json")).to_have_attribute("href", "/process/triage/fd/1.json?lines=345678")
    page.keyboard.press("w")
    expect(page.locator("#json")).to_have_attribute(
        "href", re.compile("lines=345678&wrap=0|wrap=0&lines=345678")
    )
    page.go_back()
    expect(page.locator("#json")).to_have_attribute("href", "/process/triage/fd/1.json")


def test_a_picture_that_cannot_be_drawn_is_explained_in_words(
    open_page: OpenPage, inspected: Inspected
) -> None:
    cut = inspected.process.create(b"\x89PNG\r\n\x1a\n" + b"and no more", media_type="image/png")
    page = open_page(inspected.fd(cut.fd.removeprefix("fd:")))

    expect(page.locator(".picture")).to_contain_text("no picture that can be shown")
    expect(page.locator(".picture img")).to_have_count(0)
    expect(page.locator("#O0")).to_be_visible()


def test_a_picture_that_is_cut_in_its_data_says_so(open_page: OpenPage, inspected: Inspected) -> None:
    whole = inspected.process.create(png(), media_type="image/png")
    cut = inspected.process.create(png()[:45], media_type="image/png")

    page = open_page(inspected.fd(whole.fd.removeprefix("fd:")))
    expect(page.locator(".picture img")).to_be_visible()
    expect(page.locator(".picture figcaption")).to_have_count(0)

    page = open_page(inspected.fd(cut.fd.removeprefix("fd:")))
    expect(page.locator(".picture")).to_contain_text("cut or damaged")


def test_many_hits_come_a_number_at_a_time_and_a_search_can_be_cancelled(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1?q=build"))
    expect(page.locator(".hits .summary")).to_contain_text("50 lines so far")
    expect(page.locator(".hits .summary")).to_contain_text(re.compile("500,000 in all|not counted"))
    page.locator(".hits .more").click()
    expect(page.locator(".hits li")).to_have_count(100)

    held: list[Route] = []
    page.route("**/search.json*", lambda route: held.append(route))  # not answered in time
    page.locator("#search").fill("nothing like it")
    page.keyboard.press("Enter")
    page.locator(".hits .cancel").click()

    expect(page.locator(".hits .summary")).to_contain_text("cancelled")
    held[0].abort()


def test_hostile_content_is_shown_and_never_runs(open_page: OpenPage, inspected: Inspected) -> None:
    page = open_page(inspected.fd("2?q=script|evil&re=1"))
    expect(page.locator(".hits li")).to_have_count(3)
    by_server = page.locator(".text").inner_html()

    page.locator("#go").fill("1")
    page.keyboard.press("Enter")
    expect(page.locator("#L1")).to_have_class(re.compile("on"))

    shown = page.locator(".row .tx").all_text_contents()
    assert shown[:3] == HOSTILE.splitlines()[:3]
    assert shown[3] == "red U+202EevilU+202C zeroU+200Bwidth BELbellCR"
    assert page.locator(".text").locator("img, svg, script").count() == 0
    assert "ran" not in page.title()
    expect(page.locator(".fd-head .source")).to_have_text("<b onclick=alert(1)>source</b>")
    # rows in the page and rows loaded by its script are the same
    page.goto(inspected.fd("2"))
    first = page.locator(".text").inner_html()
    page.locator("#raw").click()
    expect(page.locator("#raw")).to_have_attribute("aria-pressed", "true")
    assert page.locator(".row .tx").nth(3).text_content() == HOSTILE.split("\n")[3]
    page.locator("#raw").click()
    expect(page.locator("#raw")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".row .tx").nth(3)).to_contain_text("U+202E")
    assert page.locator(".text").inner_html() == first
    page.get_by_role("button", name="Colours").click()
    expect(page.locator(".row .tx").nth(3)).to_contain_text("ESC[31mredESC[0m")
    assert by_server.count("<i ") == first.count("<i ") >= 5


COLOUR_CONTRASTS = """() => {
    const canvas = document.createElement("canvas");
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const luminance = (colour) => {
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        const [r, g, b] = Array.from(pen.getImageData(0, 0, 1, 1).data, (value) => {
            const share = value / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const back = luminance(getComputedStyle(document.querySelector(".window")).backgroundColor);
    return Array.from(document.querySelectorAll(".sgr"), (each) => {
        const text = luminance(getComputedStyle(each).color);
        return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_text_can_be_read(
    open_page: OpenPage, inspected: Inspected, scheme: Literal["light", "dark"]
) -> None:
    colours = [f"\x1b[0;{faint}38;5;{n}mx" for n in range(256) for faint in ("", "2;")]
    fd = inspected.process.create("\n".join(colours), page_size=100_000).fd
    page = open_page(inspected.fd(fd[3:]))
    page.emulate_media(color_scheme=scheme)

    contrasts = page.evaluate(COLOUR_CONTRASTS)

    assert len(contrasts) == len(colours)
    assert min(contrasts) >= 4.5
    assert (
        page.evaluate(
            "new Set(Array.from(document.querySelectorAll('.sgr'), (e) => getComputedStyle(e).color)).size"
        )
        > 100
    )


def test_a_line_of_megabytes_is_shown_in_pieces_and_searched(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("4"))
    expect(page.locator(".row").first).to_be_visible()
    assert page.evaluate("document.querySelector('.text').textContent.length") < 200_000

    page.locator("#search").fill("NEEDLE")
    page.keyboard.press("Enter")

    expect(page.locator(".row mark")).to_have_text("NEEDLE")
    expect(page.locator(".row mark")).to_be_in_viewport()
    # once the text rests, the URL still names what was found
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 500))")
    expect(page).to_have_url(re.compile("chars=2000001-2000006"))
    shared = open_page(page.url)
    expect(shared.locator(".row mark")).to_be_in_viewport()
    page.keyboard.press("w")
    expect(page.locator(".text")).not_to_have_class(re.compile("wrap"))
    expect(page).to_have_url(re.compile("wrap=0"))


def test_bytes_are_scrolled_as_a_dump(open_page: OpenPage, inspected: Inspected) -> None:
    page = open_page(inspected.fd("3"))

    page.locator("#go").fill("0x10000")
    page.keyboard.press("Enter")

    expect(page.locator("#O65536")).to_be_in_viewport()
    expect(page.locator("#O65536 .tx")).to_have_text("00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f")
    page.keyboard.press("G")
    expect(page.locator(f"#O{102_400 - 16}")).to_be_in_viewport()

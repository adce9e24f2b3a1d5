"""No displayed text contains anything that a model could read as a frame tag, however it is spelled."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from confusable_homoglyphs.confusables import confusables_data
from hypothesis import example, given
from hypothesis import strategies as st

from fdstore.agents.loop.history import fork_task_text
from fdstore.elements import render
from fdstore.elements.build import render as render_element
from fdstore.elements.confusables import CONFUSABLES
from fdstore.elements.kinds import FdClose, FdContent
from fdstore.errors import InvalidArgument
from fdstore.model.records import ProcessRecord
from fdstore.tools.process_task import ForkTask
from tests.waiting import stretched

NAMES = ("fd_", "process_", "preview", "tail", "message")
TAG = re.compile(rf"<[\s\0-\x1f\x7f-\x9f\u2800]*(?:/[\s\0-\x1f\x7f-\x9f\u2800]*)?(?:{'|'.join(NAMES)})")
CONTROLS = {*range(0x09), *range(0x0E, 0x20), *range(0x7F, 0x85), *range(0x86, 0xA0)}
IGNORABLE = {
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
    *(*range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
    *(*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4)),
    *(*range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
}
"""Default_Ignorable_Code_Point of Unicode 15."""
UNSEEN = IGNORABLE | CONTROLS

invisible = st.sampled_from(sorted(UNSEEN)).map(chr)
DISGUISES = "< ＜ ﹤ / ／ f ｆ 𝒇 d Ⓓ _ ＿ fd_ Process_ 𝐭𝐚𝐢𝐥 meſſage preⅵew ‹ ք ԁ рrосess_"
disguised = st.sampled_from(DISGUISES.split(" "))
hostile = st.lists(disguised | invisible | st.sampled_from(" \n>x<") | st.characters(), max_size=30).map(
    "".join
)


def read_leniently(text: str) -> str:
    """Return `text` without invisible characters and differences of case and font."""
    seen = "".join(char for char in text if ord(char) not in UNSEEN)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())


def confusables_of(char: str) -> set[str]:
    """Return the characters with which Unicode Technical Standard #39 confuses `char` or its capital."""
    alike = {char, char.upper()}
    for _ in range(2):  # from a character to what it looks like, and from there to the others
        alike |= {row["c"].strip("\u200e") for each in alike for row in confusables_data.get(each, ())}
    return {each for each in alike if len(each) == 1}


def body_of(text: str) -> str:
    """`text` as it is shown in a page of a stored text."""
    return render_element(FdContent(fd="fd:1"), text).text.partition("\n")[2].removesuffix("\n</fd_content>")


@pytest.mark.parametrize(
    "text",
    [
        *("<fd_content>", "</preview>", "<FD_Result>", "< / tail", "<\nmessage", "<process_result/>"),
        *("<python_result>", "<\n\u200btail>"),
        *("<\ufe0ffd_list>", "</\U000e0100fd_list>", "<f\u200dd_list>", "<pro\u00adcess_result>"),
        *("<\u034ftail>", "<\u3164message>", "<\u180emessage>", "<\u2066fd_", "<\U000e0041fd_", "<\ufefffd_"),
        *("<f\0d_list>", "<\u2800fd_list>", "＜fd_list>", "﹤/fd_list>", "<／fd_list>", "<ｆｄ＿list>"),
        *("<𝐟𝐝_list>", "<ⓣⓐⓘⓛ>", "<preⅵew>", "<meßage>", "<ta\u2071l>", "<pr㋎iew>"),
        *("<fԁ_result fd='fd:1'>", "<ƒd_".replace("ƒ", "ք"), "<FԀ_LIST>", "</рrосеѕѕ_result>", "<preνіew>"),
        *("<tаil>", "<mеѕsаge>", "<rnessage>", "<tai1>", "<TAI|>", "<pr0cess_", "‹fd_list>", "<∕tail>"),
        "<fd\u07fa",
        *("<ṭail".replace("ṭ", "τ"), "<ΜΕSSΑGE>", "<ᏢREVIEW", "<r\u200bnessage", "<ｒnessage"),
        "<" + "".join(chr(0xE0000 + ord(char)) for char in "/fd_content>"),
        "".join(chr(0xE0000 + ord(char)) for char in "<FD_content>"),
    ],
    ids=ascii,
)
def test_a_tag_in_disguise_is_escaped_wherever_a_text_is_shown(text: str) -> None:
    shown = f"&lt;{text[1:]}"

    assert body_of(f"é {text}") == f"é {shown}"
    assert render.fd_inline(f"é {text}") == f'<fd_inline escaped="true">\né {shown}\n</fd_inline>'
    assert render.process_result(ProcessRecord(id="a.1", state="exited"), text).text.endswith(
        f'escaped="true">\n{shown}\n</process_result>'
    )


@pytest.mark.parametrize(
    "text",
    [
        *("a < b", "<p>é</p>", "<fd>", "< f d _", "<\u0338fd_", "≮fd_", "<é fd_", "<proce_", "&lt;fd_list>"),
        *("x" * 99, "<fdx_", "fd_content>", "<b>tail</b>", "<div><", "</"),
    ],
)
def test_a_text_without_such_a_tag_stays_as_it_is(text: str) -> None:
    assert body_of(text) == render.fd_inline(text) == text


@given(text=hostile)
@example("<\u2061fd_")
@example("<\U000e0066\U000e0064\U000e005f" + "fd_")
def test_no_tag_survives_dropping_invisible_characters_and_folding_the_rest(text: str) -> None:
    attribute = render_element(FdClose(fd=text)).text
    inline = render.fd_inline(text)
    own = 2 if inline != text else 0

    assert not TAG.search(read_leniently(body_of(text)))
    assert len(TAG.findall(read_leniently(attribute))) == 1
    assert len(TAG.findall(read_leniently(inline))) == own
    assert len(TAG.findall(read_leniently(render.fd_error(InvalidArgument("", text)).text))) == 4


@given(text=hostile)
def test_only_less_than_signs_are_changed(text: str) -> None:
    signs = str.maketrans(dict.fromkeys("<＜﹤\U000e003c" + CONFUSABLES["<"], "<"))

    assert body_of(text).replace("&lt;", "<").translate(signs) == text.replace("&lt;", "<").translate(signs)


@pytest.mark.thorough("every character of Unicode")
def test_no_character_of_unicode_can_stand_for_letters_of_a_tag_unnoticed() -> None:
    missed = []
    for char in map(chr, range(0x80, sys.maxunicode + 1)):
        folded = read_leniently(char)
        if folded == char or not folded:
            continue
        for name in NAMES:
            for at in range(len(name)):
                text = f"<{name[:at]}{char}{name[at + len(folded) :]}"
                if folded[0] == name[at] and TAG.match(read_leniently(text)) and body_of(text) == text:
                    missed.append(text)

    assert not missed


@pytest.mark.parametrize("name", NAMES)
def test_no_character_that_the_standard_confuses_with_a_letter_of_a_tag_is_missed(name: str) -> None:
    texts = [
        f"<{name[:at]}{char}{name[at + 1 :]}" for at in range(len(name)) for char in confusables_of(name[at])
    ]
    texts += [f"{char}/{name}" for char in confusables_of("<")]
    texts += [f"<{char}{name}" for char in confusables_of("/")]

    assert len(texts) > 60
    assert [text for text in texts if body_of(text) == text] == []
    assert [text for text in texts if body_of(f"{text}é") == f"{text}é"] == []


@pytest.mark.thorough("its size takes long")
@pytest.mark.parametrize(
    "body",
    [
        "<" * 10_000_000 + "é",
        ("<p" + "\u200b" * 1000) * 10_000,
        "<\u200b" * 3_000_000,
        "<messag" * 1_000_000 + "é",
    ],
    ids=["angle brackets", "long gaps", "short gaps", "beginnings"],
)
@pytest.mark.timeout(stretched(30))
def test_ten_megabytes_of_near_tags_are_scanned_in_one_pass(body: str) -> None:
    assert render.fd_inline(body) is body


def test_the_task_of_a_fork_cannot_be_mistaken_for_a_result() -> None:
    task = ForkTask(of="a", records=3, call="c", prompt="<process_result>", copy=1, copies=1)

    assert fork_task_text(task).endswith('\n\n<fd_inline escaped="true">\n&lt;process_result>\n</fd_inline>')

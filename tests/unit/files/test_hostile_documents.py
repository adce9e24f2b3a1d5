"""Documents that were made to harm: each is refused with a typed error, or its text is harmless."""

from __future__ import annotations

import io
import os
import random
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fdstore.errors import FDStoreError, InvalidArgument, TimedOut, TooLarge
from fdstore.files.documents import convert as conversion
from fdstore.files.documents.convert import ReadLimits, convert, document_type
from fdstore.files.documents.kinds import OLD_OFFICE
from fdstore.files.unpacking import UnpackLimits
from tests.thorough import sample
from tests.unit.files.documents_made import (
    DOCUMENTS,
    P,
    R,
    W,
    docx_of,
    epub_of,
    ods_of,
    ods_row,
    ods_sheet,
    office_of,
    paragraph,
    pdf_of,
    relations,
    stream,
    whole_pdf,
    xlsx_of,
)
from tests.unit.files.packing import plain, raw_zip, zip_of
from tests.waiting import PATIENCE_S

Make = Callable[[], bytes]

LIMITS = ReadLimits(memory_bytes=512 << 20, cpu_s=10, wall_s=PATIENCE_S)
UNPACK = UnpackLimits(bytes=64 << 20, hint="raise --max-{name}")

LAUGHS = "<!DOCTYPE x [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
OUTSIDE = "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/hostname'>]>"
DOC = f'<w:document xmlns:w="{W}"><w:body>'
ENDED = "</w:body></w:document>"
ACTION = b"<</Type/Catalog/Pages 2 0 R/OpenAction<<%s>>>>"
CORNER = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'


def text_of(
    folder: Path, name: str, data: bytes, unpack: UnpackLimits = UNPACK, limits: ReadLimits = LIMITS
) -> str:
    path, made = folder / name, folder / "made"
    path.write_bytes(data)
    with path.open("rb") as file, made.open("w+b") as target:
        media_type = document_type(file, name)
        assert media_type is not None, "it is no document"
        convert(file, media_type, name, target, unpack, limits)
    return made.read_text("utf-8")


def word_part(xml: str) -> bytes:
    return office_of("word/document.xml", {"word/document.xml": xml})


def many_pages() -> bytes:
    """A PDF whose tree of pages names itself again and again."""
    nodes = {
        2 + n: b"<</Type/Pages/Count 1000000000/Kids[%s]>>" % (b"%d 0 R " % (3 + n) * 50) for n in range(9)
    }
    return whole_pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", **nodes, 11: b"<</Type/Page/Parent 10 0 R>>"})


def form_in_itself() -> bytes:
    drawn = b"/X Do BT /F 9 Tf (shown) Tj ET"
    form = (
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 1000 0 R>>>>/Length %d>>"
        b"stream\n%s\nendstream"
    )
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 850]/Contents 1001 0 R/Resources<</Font<</F 3 0 R>>"
        b"/XObject<</X 1000 0 R>>>>>>"
    )
    return pdf_of("", extra={10: page, 1000: form % (len(drawn), drawn), 1001: stream(drawn)})


def changed(data: bytes, seed: int) -> bytes:
    """Return data with some bytes changed."""
    chance, made = random.Random(seed), bytearray(data)
    for _ in range(12):
        made[chance.randrange(8, len(made))] = chance.randrange(256)
    return bytes(made)


REFUSED: dict[str, tuple[Make, str]] = {
    # encrypted
    "password.pdf": (
        lambda: pdf_of(
            "secret",
            extra={
                1000: b"<</Filter/Standard/V 2/R 3/Length 128/P -4/O<%s>/U<%s>>>" % (b"41" * 32, b"42" * 32)
            },
            trailer=b"/Encrypt 1000 0 R/ID[<41><42>]",
        ),
        "it is encrypted, and has a password",
    ),
    "password.docx": (lambda: OLD_OFFICE + bytes(4096), "it is encrypted, and has a password"),
    "password.xlsx": (lambda: OLD_OFFICE, "it is encrypted, and has a password"),
    "password.pptx": (lambda: OLD_OFFICE + b"x" * 99, "it is encrypted, and has a password"),
    "member.docx": (
        lambda: raw_zip(plain("[Content_Types].xml", b"x"), plain("word/document.xml", b"x" * 20, flags=1)),
        "it is damaged: it is encrypted",
    ),
    "locked.epub": (
        lambda: zip_of(
            [
                ("mimetype", b"application/epub+zip"),
                ("META-INF/container.xml", b'<c><rootfile full-path="b"/></c>'),
                ("META-INF/encryption.xml", b"<encryption/>"),
                ("b", b'<p><item id="a" href="a" media-type="text/html"/><itemref idref="a"/></p>'),
                ("a", b"\xff\xfe\x81\x00" * 20),
            ],
            method=0,
        ),
        "its seller has locked it",
    ),
    "password.ods": (
        lambda: zip_of(
            [
                ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"),
                ("content.xml", b"\x81\x82"),
                ("META-INF/manifest.xml", b"<m><file-entry><encryption-data/></file-entry></m>"),
            ],
            method=0,
        ),
        "it is encrypted, and has a password",
    ),
    # damaged
    "head alone.pdf": (lambda: b"%PDF-1.7\n", "it is damaged"),
    "noise.pdf": (lambda: b"%PDF-1.7\n" + random.Random(1).randbytes(5000), "it is damaged"),
    "cut.pdf": (lambda: pdf_of("one", "two")[:-120], "it is damaged"),
    "no pages.pdf": (lambda: whole_pdf({1: b"<</Type/Catalog>>"}), "it is damaged"),
    "pages within pages.pdf": (many_pages, "it is damaged|did not happen|memory"),
    "pictures.pdf": (lambda: pdf_of("", " "), "none of its 2 pages has text"),
    "picture.pdf": (lambda: pdf_of(""), "its page has no text"),
    "no part.docx": (
        lambda: office_of("word/document.xml", {"word/x": ""}),
        "it has no part word/document.xml",
    ),
    "cut xml.docx": (lambda: word_part(DOC), "its part word/document.xml is damaged: no element found"),
    "not xml.docx": (lambda: word_part("words"), "is damaged: syntax error"),
    "other encoding.docx": (lambda: word_part('<?xml version="1.0" encoding="x"?><a/>'), "unknown encoding"),
    "no rels.pptx": (
        lambda: office_of(
            "ppt/presentation.xml",
            {"ppt/presentation.xml": f'<p:p xmlns:p="{P}" xmlns:r="{R}"><p:sldId r:id="no"/></p:p>'},
        ),
        "it has no part",
    ),
    "no sheets.xlsx": (lambda: office_of("xl/workbook.xml", {"xl/x.xml": ""}), "it is damaged"),
    "not xml.xlsx": (lambda: xlsx_of({"A": "<row><c"}), "its sheet 'A' is damaged|it is damaged"),
    "no container.epub": (
        lambda: zip_of([("mimetype", b"application/epub+zip")], method=0),
        "it has no part META-INF/container.xml",
    ),
    "no package.epub": (
        lambda: zip_of(
            [("mimetype", b"application/epub+zip"), ("META-INF/container.xml", b"<c/>")], method=0
        ),
        "where its chapters are listed",
    ),
    "no content.ods": (
        lambda: zip_of([("mimetype", b"application/vnd.oasis.opendocument.spreadsheet")], method=0),
        "it is damaged",
    ),
    "checksum.docx": (
        lambda: raw_zip(plain("[Content_Types].xml", b"x"), plain("word/document.xml", b"x", crc=1)),
        "its checksum is wrong",
    ),
    "overlapping.docx": (
        lambda: raw_zip(plain("[Content_Types].xml", b"x" * 60), plain("word/document.xml", b"x", offset=0)),
        "members of it overlap",
    ),
    # entities
    "laughs.docx": (
        lambda: word_part(f"{LAUGHS}]>{DOC}<w:p><w:r><w:t>&i;</w:t></w:r></w:p>{ENDED}"),
        "entities",
    ),
    "laughs.pptx": (
        lambda: office_of("ppt/presentation.xml", {"ppt/presentation.xml": f"{LAUGHS}]><p>&i;</p>"}),
        "entities",
    ),
    "laughs.xlsx": (
        lambda: with_part(DOCUMENTS[".xlsx"], "xl/s1.xml", b"one", b"&i;", f"{LAUGHS}]>".encode()),
        "its sheet 'Totals' is damaged",
    ),
    "laughs.ods": (
        lambda: with_part(DOCUMENTS[".ods"], "content.xml", b"one", b"&i;", f"{LAUGHS}]>".encode()),
        "it is damaged",
    ),
    "outside.xlsx": (
        lambda: with_part(DOCUMENTS[".xlsx"], "xl/s1.xml", b"one", b"&e;", OUTSIDE.encode()),
        "its sheet 'Totals' is damaged",
    ),
    "outside.docx": (lambda: word_part(f"{OUTSIDE}{DOC}{paragraph('x')}&e;{ENDED}"), "entities"),
    # too large, and numbers out of range
    "columns.xlsx": (
        lambda: xlsx_of({"A": '<row r="9"><c r="ZZZZZZ99999999999"><v>1</v></c></row>'}),
        "that takes more than 512 MiB of memory|damaged",
    ),
    "negative.xlsx": (lambda: xlsx_of({"A": '<row r="-1"><c r="A-1"><v>1</v></c></row>'}), "'A' is damaged"),
    "rows.ods": (
        lambda: ods_of(
            ods_sheet(
                "A",
                '<table:table-row table:number-rows-repeated="1048576"><table:table-cell '
                'table:number-columns-repeated="16384" office:value-type="float" office:value="1"/>'
                "</table:table-row>",
            )
        ),
        "the text of rows.ods has 1048577 bytes, more than the limit of 1048576; raise --max-ratio",
    ),
}
BOMBS: dict[str, tuple[Make, str]] = {
    "zeros.docx": (
        lambda: word_part(DOC + " " * (8 << 20) + ENDED),
        "200 times its own size",
    ),
    "zeros.xlsx": (lambda: xlsx_of({"A": " " * (8 << 20)}), "raise --max-ratio"),
    "zeros.pptx": (
        lambda: office_of("ppt/presentation.xml", {"ppt/x": b"\0" * (8 << 20)}),
        "raise --max-ratio",
    ),
    "zeros.epub": (lambda: zipped_book(" " * (8 << 20)), "raise --max-ratio"),
    "promised.docx": (
        lambda: raw_zip(plain("[Content_Types].xml", b"x"), plain("word/a", b"x", size=0xFFFFFFF0)),
        "raise --max-bytes",
    ),
    "members.docx": (
        lambda: zip_of({"[Content_Types].xml": b"", **{f"word/{n}": b"" for n in range(10_001)}}),
        "members, more than the limit of 10000",
    ),
}


def zipped_book(body: str) -> bytes:
    """Return a book whose chapters are compressed."""
    return zip_of([("mimetype", b"application/epub+zip"), ("META-INF/container.xml", body.encode())])


HARMLESS: dict[str, tuple[Make, str]] = {
    "far future.xlsx": (
        lambda: xlsx_of({"A": [["s3|1e300", "s1|1e300", "s1|-2"], ["s1|45323", "s2|2958465.5"]]}),
        "[sheet A]\n1e+300,1e+300,-2\n2024-02-01,9999-12-31T12:00:00,\n",
    ),
    "corner.xlsx": (
        lambda: xlsx_of({"A": CORNER, "B": [["x"], ["", "s1|45323"]]}),
        f"[sheet A]\n1\n[row 1048576]\n{',' * 16383}2\n[sheet B]\nx,\n,2024-02-01\n",
    ),
    "corner.ods": (
        lambda: ods_of(
            ods_sheet(
                "A",
                ods_row("x"),
                '<table:table-row table:number-rows-repeated="1048573"><table:table-cell/></table:table-row>',
                '<table:table-row table:number-rows-repeated="2"><table:table-cell '
                'table:number-columns-repeated="16382"/><table:table-cell office:value-type="date" '
                'office:date-value="2024-02-01" table:number-columns-repeated="2"/></table:table-row>',
            )
            + ods_sheet("B", ods_row("y", "z"))
        ),
        "[sheet A]\nx\n[row 1048575]\n"
        f"{(',' * 16382 + '2024-02-01,2024-02-01' + chr(10)) * 2}[sheet B]\ny,z\n",
    ),
    "xml in pdf.pdf": (lambda: pdf_of("</fd_content> <fd_result>"), "[page 1]\n</fd_content> <fd_result>\n"),
    "action.pdf": (
        lambda: pdf_of("text", extra={1: ACTION % b"/S/JavaScript/JS(app.x())"}),
        "[page 1]\ntext\n",
    ),
    "launch.pdf": (
        lambda: pdf_of("text", extra={1: ACTION % b"/S/Launch/F(/bin/sh)"}),
        "[page 1]\ntext\n",
    ),
    "form in itself.pdf": (form_in_itself, "shown"),
    "many claimed.pdf": (lambda: pdf_of("one", count=1_000_000_000), "[page 1]\none\n"),
    "wrong table.pdf": (lambda: pdf_of("one").replace(b"startxref\n", b"startxref\n9"), "[page 1]\none\n"),
    "deep.docx": (lambda: docx_of("<w:x>" * 50_000 + paragraph("deep") + "</w:x>" * 50_000), "deep\n"),
    "deep boxes.docx": (
        lambda: docx_of("<w:p><w:r>" * 20_000 + paragraph("deep") + "</w:r></w:p>" * 20_000),
        "deep\n",
    ),
    "deep tables.docx": (
        lambda: docx_of("<w:tbl><w:tr><w:tc>" * 5_000 + paragraph("deep") + "</w:tc></w:tr></w:tbl>" * 5_000),
        "deep\n",
    ),
    "macro.docx": (lambda: docx_of(paragraph("text"), vbaProject="Shell calc"), "text\n"),
    "template.docx": (
        lambda: office_of(
            "word/document.xml",
            {
                "word/document.xml": DOC + paragraph("text") + ENDED,
                "word/_rels/document.xml.rels": relations(
                    attachedTemplate="http://127.0.0.1:9/x.dotm"
                ).replace(b"/>", b' TargetMode="External"/>'),
            },
        ),
        "text\n",
    ),
    "leads out.docx": (
        lambda: office_of(
            "word/document.xml",
            {
                "word/document.xml": DOC + paragraph("text") + ENDED,
                "word/_rels/document.xml.rels": relations(styles="../../../etc/passwd"),
            },
        ),
        "text\n",
    ),
    "marks.docx": (lambda: docx_of(paragraph("[page 7]")), " [page 7]\n"),
    "controls.docx": (lambda: docx_of(paragraph("a\u202eb\u200bc")), "a\u202eb\u200bc\n"),
    "many sheets.xlsx": (lambda: xlsx_of({f"s{n}": [] for n in range(2000)}), "[sheet s1999]\n"),
    "wrong dimension.xlsx": (
        lambda: office_of_sheet(
            '<dimension ref="A1:XFD1048576"/>', '<row r="1"><c r="A1"><v>5</v></c></row>'
        ),
        "[sheet A]\n5\n",
    ),
    "name.xlsx": (lambda: xlsx_of({"A]\n[sheet B": [["x"]]}), "[sheet A] [sheet B]\nx\n"),
    "formula.xlsx": (
        lambda: xlsx_of({"A": [['<f>WEBSERVICE("http://127.0.0.1:9")</f><v>1</v>']]}),
        "[sheet A]\n1\n",
    ),
    "cell.xlsx": (lambda: xlsx_of({"A": [["[sheet B]"]]}), "[sheet A]\n [sheet B]\n"),
    "empty rows.ods": (
        lambda: ods_of(
            ods_sheet("A", ods_row("x"), ods_row("", repeated='table:number-rows-repeated="1000000"'))
        ),
        "[sheet A]\nx\n",
    ),
    "entity.epub": (lambda: epub_of("<p>a&nbsp;b &lt; &unknown; &#x110000;</p>"), "a b <"),
    "script.epub": (lambda: epub_of("<script>document.write('no')</script><p>yes</p>"), "[chapter 1]\nyes\n"),
    "deep.epub": (lambda: epub_of("<div>" * 50_000 + "deep"), "[chapter 1]\ndeep\n"),
    "open.epub": (lambda: epub_of("<p>one<p>two</b></i><!-- x"), "one\ntwo"),
    "leads out.epub": (
        lambda: zip_of(
            [
                ("mimetype", b"application/epub+zip"),
                ("META-INF/container.xml", b'<c><rootfile full-path="b"/></c>'),
                (
                    "b",
                    b'<p><item id="a" href="../../etc/passwd" media-type="text/html"/><itemref idref="a"/>'
                    b'<item id="c" href="c" media-type="text/html"/><itemref idref="c"/></p>',
                ),
                ("c", b"<p>text</p>"),
            ],
            method=0,
        ),
        "[chapter 1]\ntext\n",
    ),
    "same slide.pptx": (
        lambda: office_of(
            "ppt/presentation.xml",
            {
                "ppt/presentation.xml": f'<p:p xmlns:p="{P}" xmlns:r="{R}">'
                + '<p:sldId r:id="slide1"/>' * 500
                + "</p:p>",
                "ppt/_rels/presentation.xml.rels": relations(slide1="slide1.xml"),
                "ppt/slide1.xml": "<s><p><t>text</t></p></s>",
            },
        ),
        "[slide 500]\ntext\n",
    ),
}


def office_of_sheet(before: str, rows: str) -> bytes:
    """Return a workbook whose sheet has other XML before its rows."""
    return with_part(xlsx_of({"A": rows}), "xl/s1.xml", b"<sheetData>", before.encode() + b"<sheetData>")


def with_part(data: bytes, path: str, old: bytes, new: bytes, before: bytes = b"") -> bytes:
    """Return a document with another text in one part, and with something before it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    return zip_of(
        [(name, before + part.replace(old, new) if name == path else part) for name, part in parts],
        zipfile.ZIP_STORED,
    )


@pytest.mark.parametrize("name", sample(REFUSED, 7, "more documents"))
def test_a_document_without_a_text_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    make, problem = REFUSED[name]

    with pytest.raises((InvalidArgument, TimedOut, TooLarge), match=problem):
        text_of(tmp_path, name, make())


@pytest.mark.parametrize("name", sample(BOMBS, 2, "more documents"))
def test_a_document_that_unpacks_to_too_much_is_refused_with_the_option(tmp_path: Path, name: str) -> None:
    make, problem = BOMBS[name]

    with pytest.raises(TooLarge, match=problem):
        text_of(tmp_path, name, make())


@pytest.mark.parametrize("name", sample(HARMLESS, 6, "more documents"))
def test_a_document_with_traps_has_its_text(tmp_path: Path, name: str) -> None:
    make, text = HARMLESS[name]

    assert text in text_of(tmp_path, name, make())


@pytest.mark.parametrize("suffix", sample(DOCUMENTS, 2, "more documents"))
def test_a_cut_or_changed_document_has_a_text_or_a_typed_error(tmp_path: Path, suffix: str) -> None:
    whole = DOCUMENTS[suffix]
    variants = [whole[: len(whole) * part // 4] for part in range(1, 4)]
    variants += [changed(whole, seed) for seed in range(6)]
    said = []

    for data in variants:
        try:
            said.append(text_of(tmp_path, f"document{suffix}", data))
        except FDStoreError as error:
            said.append(str(error))
        except AssertionError as error:  # it is not recognized any more
            said.append(str(error))

    assert len(said) == len(variants)
    assert "its reader has crashed" not in " ".join(said)


@pytest.mark.thorough("many megabytes")
def test_a_long_text_is_refused_with_the_option(tmp_path: Path) -> None:
    text = "a line of words\n" * 50

    with pytest.raises(TooLarge, match=r"the text of long.pdf has 1048577 bytes, .* raise --max-ratio"):
        text_of(tmp_path, "long.pdf", pdf_of(*[text] * 2000), UNPACK._replace(ratio=1))


@pytest.mark.thorough("a bound of time")
def test_a_document_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(TimedOut, match=r"the end of reading slow.docx did not happen within 1 s"):
        text_of(tmp_path, "slow.docx", many_words(), UNPACK._replace(ratio=10**6), LIMITS._replace(cpu_s=1))


def many_words() -> bytes:
    """A document that takes seconds to read."""
    return docx_of("<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 1_500_000)


def test_a_reader_that_waits_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_START", "import time; time.sleep(3600)")

    with pytest.raises(TimedOut):
        text_of(tmp_path, "x.pdf", DOCUMENTS[".pdf"], limits=LIMITS._replace(wall_s=0.5))


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no filter of calls")
def test_a_reader_can_neither_open_a_socket_nor_start_a_program_nor_write_a_file(tmp_path: Path) -> None:
    probe = (
        "import os, socket, sys\n"
        "from fdstore.files.documents.child import _forbid\n"
        f"_forbid(bytes.fromhex({conversion._filter()!r}))\n"
        "def tries():\n"
        "    yield 'socket', lambda: socket.socket()\n"
        f"    yield 'write', lambda: open({str(tmp_path / 'made')!r}, 'w')\n"
        "    yield 'start', lambda: os.execv('/bin/true', ['true'])\n"
        f"    yield 'remove', lambda: os.unlink({str(tmp_path / 'kept')!r})\n"
        "for name, attempt in tries():\n"
        "    try:\n        attempt()\n        print(name)\n"
        "    except PermissionError:\n        pass\n"
        f"print(open({str(tmp_path / 'kept')!r}).read())\n"
    )
    (tmp_path / "kept").write_text("read")

    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=PATIENCE_S)

    assert ran.stdout == "read\n", ran.stderr


def test_nothing_that_a_document_refers_to_is_fetched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        server.setblocking(False)
        body = f'<img src="{url}"/><iframe src="{url}"></iframe><p>text</p>'
        external = relations(attachedTemplate=url, styles=url).replace(b"/>", b' TargetMode="External"/>')
        parts = {
            "word/document.xml": DOC + paragraph("text") + ENDED,
            "word/_rels/document.xml.rels": external,
        }
        action = ACTION % b"/S/URI/URI(%s)" % url.encode()
        made = {
            "a.epub": epub_of(body),
            "a.docx": office_of("word/document.xml", parts),
            "a.pdf": pdf_of("text", extra={1: action}),
        }

        for name, data in made.items():
            assert "text" in text_of(tmp_path, name, data)

        with pytest.raises(BlockingIOError):  # there was no connection
            server.accept()


def test_the_surroundings_do_not_reach_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pypdfium2.py").write_text("raise SystemExit('another module')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    monkeypatch.setattr(sys, "path", ["", *sys.path])

    assert text_of(tmp_path, "x.pdf", DOCUMENTS[".pdf"]) == "[page 1]\none\n[page 2]\ntwo\n"

"""Documents as text: each kind, and what of it."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path

import pytest

from fdstore.errors import InvalidArgument
from fdstore.files.documents import sheets, sparse_sheets
from fdstore.files.documents.convert import convert, document_type
from fdstore.files.documents.writing import TextWriter
from fdstore.files.folders import Patterns
from fdstore.files.members import Choice, Members, find_members
from tests.unit.files.documents_made import (
    DOCUMENTS,
    W,
    docx_of,
    epub_of,
    ods_of,
    ods_row,
    ods_sheet,
    paragraph,
    pdf_of,
    pptx_of,
    xlsx_of,
)
from tests.unit.files.packing import tar_of, zip_of

NONE = Patterns([])


def text_of(folder: Path, data: bytes, name: str = "document") -> str:
    """Convert a document."""
    path, made = folder / name, folder / "made"
    path.write_bytes(data)
    with path.open("rb") as file, made.open("w+b") as target:
        media_type = document_type(file, name)
        assert media_type is not None
        assert convert(file, media_type, name, target) == made.stat().st_size
    return made.read_text("utf-8")


def found(*paths: Path, stdin: bytes = b"") -> Members:
    return find_members([str(path) for path in paths], Choice(NONE, NONE), lambda: io.BytesIO(stdin))


def contents(members: Members) -> dict[str, bytes]:
    read = {}
    for each in members.members:
        with each.open() as file:
            read[str(each.key)] = b"".join(iter(lambda: file.read(1000), b""))
    return read


def test_each_page_of_a_pdf_begins_with_its_number(tmp_path: Path) -> None:
    text = text_of(tmp_path, pdf_of("first line\nsecond (line)", "", "third"))

    assert text == "[page 1]\nfirst line\nsecond (line)\n[page 2]\n[page 3]\nthird\n"


def test_a_line_that_looks_like_a_mark_is_preceded_by_a_blank(tmp_path: Path) -> None:
    text = text_of(tmp_path, pdf_of("[page 2]\n[page two]", "[sheet X]"))

    assert text == "[page 1]\n [page 2]\n[page two]\n[page 2]\n [sheet X]\n"


def test_a_document_of_word_keeps_headings_lists_tables_and_notes(tmp_path: Path) -> None:
    styles = (
        f'<w:styles xmlns:w="{W}"><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style></w:styles>'
    )
    notes = (
        f'<w:footnotes xmlns:w="{W}">'
        f'<w:footnote w:type="separator" w:id="-1">{paragraph("-----")}</w:footnote>'
        f'<w:footnote w:id="2">{paragraph("a note")}</w:footnote></w:footnotes>'
    )
    cells = "".join(f"<w:tc>{paragraph(each)}{paragraph('more')}</w:tc>" for each in "ab")
    body = (
        paragraph("Report", "Titel")
        + paragraph("Results", "berschrift2")
        + "<w:p><w:pPr><w:numPr/><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>item</w:t></w:r></w:p>"
        + "<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t>"
        + '<w:footnoteReference w:id="2"/></w:r></w:p>'
        + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    )

    text = text_of(tmp_path, docx_of(body, styles=styles, footnotes=notes))

    assert text == (
        "# Report\n\n## Results\n\n- item\none\ttwo\nthree[^f2]\na more | b more\n[^f2]: a note\n"
    )


def test_of_tracked_changes_the_new_text_is_taken_and_of_alternatives_one(tmp_path: Path) -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    body = (
        f"<w:p><w:ins>{run.format('new')}</w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
        f"<w:p><w:moveFrom>{run.format('away')}</w:moveFrom>{run.format('kept')}</w:p>"
        f"<mc:AlternateContent><mc:Choice>{paragraph('box')}</mc:Choice>"
        f"<mc:Fallback>{paragraph('box')}</mc:Fallback></mc:AlternateContent>"
        "<w:p><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
    )

    assert text_of(tmp_path, docx_of(body)) == "new\nkept\nbox\n"


def test_the_values_of_a_workbook_are_csv_with_dates_in_iso_8601(tmp_path: Path) -> None:
    rows = [
        ["day", "", "one, two\nthree"],
        ["s1|45323", "s2|45323.5", "s3|1.0625"],
        [],
        ["<f>A1*2</f><v>7</v>", "<v>0.1</v>", "<v>30000000000</v>"],
    ]

    text = text_of(tmp_path, xlsx_of({"Totals": rows, "Keys & more": [["secret"]]}, hidden=["Keys & more"]))

    assert text.split("\n") == [
        "[sheet Totals]",
        'day,,"one, two three"',
        "2024-02-01,2024-02-01T12:00:00,25:30:00",
        "",
        "7,0.1,30000000000",
        "[sheet Keys & more (hidden)]",
        "secret",
        "",
    ]


def test_row_n_of_a_sheet_is_line_n_after_its_mark(tmp_path: Path) -> None:
    row = '<row r="4"><c r="B4"><v>5</v></c></row>'

    assert text_of(tmp_path, xlsx_of({"Late": row})) == "[sheet Late]\n\n\n\n,5\n"


def test_many_empty_rows_are_one_line_with_the_number_of_the_next(tmp_path: Path) -> None:
    def rows(*numbers: int) -> str:
        return "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in numbers)

    sheets = {"A": rows(1, 1002, 2004), "B": [["[row 7]"]]}

    text = text_of(tmp_path, xlsx_of(sheets))

    assert text == f"[sheet A]\n1{chr(10) * 1001}1002\n[row 2004]\n2004\n[sheet B]\n [row 7]\n"


@pytest.mark.parametrize("name", [".xlsx", ".ods"])
def test_a_workbook_has_the_same_text_by_either_reader(name: str) -> None:
    rows = [
        ["day", "", "one, two\nthree", "<f>A1*2</f><v>7</v>", "<v>30000000000</v>"],
        [],
        [
            "",
            "s1|45323",
            "s2|45323.5",
            "s3|1.0625",
            '<is><r><t>a</t></r><r><t xml:space="preserve"> b</t></r></is>',
        ],
    ]
    wide = [[str(n) for n in range(26)] for _ in range(200)]
    made = {
        ".xlsx": xlsx_of({"Totals": rows, "None": [], "Wide & more": wide}, hidden=["Totals"]),
        ".ods": ods_of(
            ods_sheet(
                "A",
                *[ods_row(*map(str, range(26)))] * 200,
                ods_row("a", repeated='table:number-rows-repeated="3"'),
            )
            + ods_sheet("None")
            + ods_sheet("B", ods_row("x", "y &amp; z", "<text:span>1</text:span>"))
        ),
    }[name]

    texts = []
    for read in (sheets.read, sparse_sheets.read):
        out = io.BytesIO()
        read(io.BytesIO(made), writer := TextWriter(out))
        writer.flush()
        texts.append(out.getvalue().decode())

    assert texts[0] == texts[1]
    assert texts[0].count("\n") > 200


def test_an_open_spreadsheet_is_read_too(tmp_path: Path) -> None:
    day = (
        '<table:table-row><table:table-cell office:value-type="date" office:date-value="2024-02-01"/>'
        '<table:table-cell office:value-type="float" office:value="2" table:formula="of:=1+1"/>'
        '<table:table-cell office:value-type="boolean" office:boolean-value="true"/></table:table-row>'
    )

    text = text_of(tmp_path, ods_of(ods_sheet("A", ods_row("x", "y"), day) + ods_sheet("B")))

    assert text == "[sheet A]\nx,y,\n2024-02-01,2,TRUE\n[sheet B]\n"


def test_slides_are_in_the_order_of_the_presentation_with_their_notes(tmp_path: Path) -> None:
    text = text_of(tmp_path, pptx_of(["one\nmore", "two"], notes={2: "say it"}, hidden=[1]))

    assert text == "[slide 1 (hidden)]\none\nmore\n[slide 2]\ntwo\n[notes of slide 2]\nsay it\n"


def test_the_chapters_of_a_book_are_in_the_order_of_reading(tmp_path: Path) -> None:
    first = "<h1>A &amp; B</h1><p>one\n  <i>two</i><br/>three</p><script>no()</script><ul><li>item</li></ul>"

    text = text_of(tmp_path, epub_of(first, "<p>  </p>", "<pre>a\n  b</pre>"))

    assert text == "[chapter 1]\n# A & B\n\none two\nthree\n\n- item\n[chapter 2]\na\nb\n"


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_content_tells_a_document_whatever_its_name(tmp_path: Path, suffix: str) -> None:
    text = text_of(tmp_path, DOCUMENTS[suffix], "no suffix")

    assert "one" in text
    assert "two" in text


def test_a_document_is_its_bytes_and_its_text(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(DOCUMENTS[".pdf"])
    text = b"[page 1]\none\n[page 2]\ntwo\n"
    both = {"report.pdf": DOCUMENTS[".pdf"], "report.pdf.txt": text}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "r.zip").write_bytes(zip_of({"a/report.pdf": DOCUMENTS[".pdf"], "b": b"b"}))
    (tmp_path / "in" / "r.tar").write_bytes(tar_of(("report.pdf", DOCUMENTS[".pdf"]), mode="w:gz"))
    (tmp_path / "in" / "one.pdf.gz").write_bytes(gzip.compress(DOCUMENTS[".pdf"]))

    with found(path) as members:
        assert contents(members) == both
        assert [each.media_type for each in members.members] == ["application/pdf", "text/plain"]
    with found(tmp_path / "in" / "r.zip") as members:
        inside = {f"r.zip/a/{name}": data for name, data in both.items()}
        assert contents(members) == {**inside, "r.zip/b": b"b"}
    with found(tmp_path / "in") as members:
        assert sorted(contents(members)) == [
            *("in/one.pdf", "in/one.pdf.txt", "in/r.tar/report.pdf", "in/r.tar/report.pdf.txt"),
            *("in/r.zip/a/report.pdf", "in/r.zip/a/report.pdf.txt", "in/r.zip/b"),
        ]
        assert members.odd == []
    with found(Path("-"), stdin=DOCUMENTS[".docx"]) as members:
        assert contents(members) == {"stdin": DOCUMENTS[".docx"], "stdin.txt": b"one\ntwo\n"}


def test_temporary_files_are_removed_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "report.pdf").write_bytes(DOCUMENTS[".pdf"])

    with found(tmp_path / "report.pdf"):
        assert len(os.listdir(tmp_path)) == 2

    assert os.listdir(tmp_path) == ["report.pdf"]


def test_a_document_of_another_kind_and_an_archive_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "letter.odt").write_bytes(zip_of([("mimetype", b"application/vnd.oasis.opendocument.text")]))
    (tmp_path / "drawing.vsdx").write_bytes(zip_of({"[Content_Types].xml": b"", "visio/document.xml": b""}))
    folder = tmp_path / "word.zip"
    with zipfile.ZipFile(folder, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")

    with found(tmp_path) as members:
        assert sorted(contents(members)) == [
            f"{tmp_path.name}/{name}" for name in ("drawing.vsdx", "letter.odt", "word.zip/word/document.xml")
        ]


def test_a_document_that_is_named_must_have_a_text_and_of_a_folder_its_bytes_are_taken(
    tmp_path: Path,
) -> None:
    (tmp_path / "empty.pdf").write_bytes(pdf_of("", ""))
    problem = "none of its 2 pages has text: it is of pictures; ocrmypdf adds text to them"

    with pytest.raises(InvalidArgument, match=problem):
        found(tmp_path / "empty.pdf")
    with found(tmp_path) as members:
        assert list(contents(members)) == [f"{tmp_path.name}/empty.pdf"]
        [odd] = members.odd
        assert odd.path == f"{tmp_path}/empty.pdf.txt"
        assert odd.problem == f"its text cannot be read: {problem}"


def test_without_the_packages_documents_in_folders_and_archives_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fdstore.files.documents.convert.is_installed", lambda _: False)
    pdf, sheet = pdf_of("one"), xlsx_of({"A": [["1"]]})
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.pdf").write_bytes(pdf)
    (tmp_path / "d" / "b.xlsx.gz").write_bytes(gzip.compress(sheet))
    (tmp_path / "d" / "c.tar").write_bytes(tar_of(("in/d.pdf", pdf), ("e.txt", b"text")))
    (tmp_path / "f.zip").write_bytes(zip_of({"g.xlsx": sheet, "h.zip": zip_of({"x": b""})}))

    with found(tmp_path / "d", tmp_path / "f.zip") as members:
        stored = contents(members)

    names = [os.path.relpath(each, tmp_path) for each in members.unread]
    assert names == ["d/a.pdf", "d/b.xlsx.gz", "d/c.tar/in/d.pdf", "f.zip/g.xlsx"]
    assert stored["d/c.tar/in/d.pdf"] == pdf
    assert stored["f.zip/g.xlsx"] == sheet

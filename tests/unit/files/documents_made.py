"""Make documents: whole ones, and those that an attacker would make."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from html import escape

from tests.unit.files.packing import zip_of

PDF, DOCX, XLSX, PPTX, ODS, EPUB = ".pdf", ".docx", ".xlsx", ".pptx", ".ods", ".epub"

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = f'xmlns:w="{W}" xmlns:mc="urn:mc"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def pdf_of(
    *pages: str, extra: Mapping[int, bytes] | None = None, trailer: bytes = b"", count: int = -1
) -> bytes:
    """Return a PDF of these pages, a line for each line. `extra`: other objects, from number
    1000."""
    kids = b" ".join(b"%d 0 R" % (10 + 2 * number) for number in range(len(pages)))
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(pages) if count < 0 else count),
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }
    for number, page in enumerate(pages):
        shown = [
            line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in page.split("\n")
        ]
        drawn = "BT /F 10 Tf 50 800 Td 12 TL " + " ".join(f"({line}) Tj T*" for line in shown) + " ET"
        objects[10 + 2 * number] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 850]/Resources<</Font<</F 3 0 R>>>>"
            b"/Contents %d 0 R>>" % (11 + 2 * number)
        )
        objects[11 + 2 * number] = stream(drawn.encode("latin-1"))
    return whole_pdf({**objects, **(extra or {})}, trailer)


def stream(data: bytes, filters: bytes = b"/FlateDecode", rounds: int = 1) -> bytes:
    """Return the stream of an object, compressed as often as there are filters."""
    for _ in range(rounds):
        data = zlib.compress(data)
    return b"<</Length %d/Filter[%s]>>stream\n%s\nendstream" % (len(data), filters * rounds, data)


def whole_pdf(objects: Mapping[int, bytes], trailer: bytes = b"") -> bytes:
    """Return a PDF of these objects."""
    made, places = b"%PDF-1.7\n", {}
    for number, body in objects.items():
        places[number] = len(made)
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = max(objects) + 1
    table = b"".join(
        b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 65535 f \n"
        for number in range(size)
    )
    end = b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, len(made))
    return made + b"xref\n0 %d\n%s" % (size, table) + end


def relations(**targets: str) -> bytes:
    """Return relations to parts: id to target; the kind of the relation is the id without digits."""
    listed = "".join(
        f'<Relationship Id="{each}" Type="{R}/{each.rstrip("0123456789")}" Target="{target}"/>'
        for each, target in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>'.encode()


def office_of(main: str, parts: Mapping[str, str | bytes]) -> bytes:
    """Return a document of Office with these parts."""
    members = {
        "[Content_Types].xml": _content_types(main),
        "_rels/.rels": relations(officeDocument=main),
        **parts,
    }
    return zip_of({name: data.encode() if isinstance(data, str) else data for name, data in members.items()})


def _content_types(main: str) -> str:
    kinds = {"word": "wordprocessingml.document", "xl": "spreadsheetml.sheet"}
    kind = kinds.get(main.partition("/")[0], "presentationml.presentation")
    named = f"application/vnd.openxmlformats-officedocument.{kind}.main+xml"
    return (
        f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/{main}" ContentType="{named}"/></Types>'
    )


def docx_of(body: str, **parts: str) -> bytes:
    """Return a DOCX with this XML as its body; `parts`: other parts in the folder `word`, without suffix."""
    related = {name: f"{name}.xml" for name in parts}
    return office_of(
        "word/document.xml",
        {
            "word/document.xml": f"<w:document {_WORD}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(**related),
            **{f"word/{name}.xml": xml for name, xml in parts.items()},
        },
    )


def paragraph(text: str, style: str = "") -> str:
    """Return the XML of a paragraph of a DOCX."""
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{styled}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


Cells = Sequence[Sequence[str]]


def xlsx_of(sheets: Mapping[str, Cells | str], hidden: Sequence[str] = (), **parts: str) -> bytes:
    """Return an XLSX. A cell is a text, or XML of its value, as `<v>1</v>`, or the number of a style before a
    number: `s1|45000` is a date. A sheet may be the XML of its rows."""
    listed, made, related = "", {}, {}
    for number, (name, rows) in enumerate(sheets.items(), 1):
        state = ' state="hidden"' if name in hidden else ""
        listed += f'<sheet name="{escape(name)}" sheetId="{number}"{state} r:id="worksheet{number}"/>'
        xml = rows if isinstance(rows, str) else "".join(_row(*each) for each in enumerate(rows, 1))
        made[f"xl/s{number}.xml"] = f'<worksheet xmlns="{S}"><sheetData>{xml}</sheetData></worksheet>'
        related[f"worksheet{number}"] = f"s{number}.xml"
    return office_of(
        "xl/workbook.xml",
        {
            "xl/workbook.xml": f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(**related, styles="styles.xml"),
            "xl/styles.xml": f'<styleSheet xmlns="{S}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
            '<xf numFmtId="22"/><xf numFmtId="46"/></cellXfs></styleSheet>',
            **made,
            **{f"xl/{name}.xml": xml for name, xml in parts.items()},
        },
    )


def _row(number: int, cells: Sequence[str]) -> str:
    made = "".join(_cell(f"{chr(65 + column)}{number}", cell) for column, cell in enumerate(cells) if cell)
    return f'<row r="{number}">{made}</row>'


def _cell(place: str, cell: str) -> str:
    if cell.startswith("<"):
        return f'<c r="{place}">{cell}</c>'
    style, bar, value = cell.partition("|")
    if bar and style[0] == "s":
        return f'<c r="{place}" s="{style[1:]}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'


def pptx_of(
    slides: Sequence[str], notes: Mapping[int, str] | None = None, hidden: Sequence[int] = ()
) -> bytes:
    """Return a PPTX with a slide of each text; `notes` and `hidden` by numbers from 1."""
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="slide{n}"/>' for n in range(1, len(slides) + 1))
    head = f'xmlns:p="{P}" xmlns:r="{R}" xmlns:a="{A}"'
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {head}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        # files are not in the order of the slides
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"slide{n}": f"slides/slide{100 - n}.xml" for n in range(1, len(slides) + 1)}
        ),
    }
    for number, text in enumerate(slides, 1):
        path, show = f"slide{100 - number}.xml", ' show="0"' if number in hidden else ""
        body = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
        parts[f"ppt/slides/{path}"] = f"<p:sld {head}{show}><p:txBody>{body}</p:txBody></p:sld>"
        if notes and number in notes:
            parts[f"ppt/slides/_rels/{path}.rels"] = relations(notesSlide1=f"../notes/n{number}.xml")
            field = '<a:p><a:fld type="slidenum"><a:t>7</a:t></a:fld></a:p>'
            note = f"<a:p><a:r><a:t>{escape(notes[number])}</a:t></a:r></a:p>"
            parts[f"ppt/notes/n{number}.xml"] = f"<p:notes {head}>{note}{field}</p:notes>"
    return office_of("ppt/presentation.xml", parts)


OPEN = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)
STYLES = "<office:font-face-decls/><office:styles/><office:automatic-styles/><office:master-styles/>"


def ods_of(sheets: str) -> bytes:
    """Return an ODS with this XML of tables."""
    return open_of("spreadsheet", sheets)


def odt_of(*paragraphs: str) -> bytes:
    """Return an ODT of these paragraphs."""
    return open_of("text", "".join(f"<text:p>{escape(each)}</text:p>" for each in paragraphs))


def odp_of(*slides: str) -> bytes:
    """Return an ODP with a slide of each text."""
    boxes = (f"<draw:text-box><text:p>{escape(each)}</text:p></draw:text-box>" for each in slides)
    pages = (f"<draw:page><draw:frame>{each}</draw:frame></draw:page>" for each in boxes)
    return open_of("presentation", "".join(pages))


def open_of(name: str, content: str) -> bytes:
    """Return an OpenDocument of the kind that has this name, with this XML as its content."""
    kind = f"application/vnd.oasis.opendocument.{name}"
    body = f"<office:body><office:{name}>{content}</office:{name}></office:body>"
    return zip_of(
        [
            ("mimetype", kind.encode()),
            ("content.xml", f"<office:document-content {OPEN}>{body}</office:document-content>".encode()),
            ("styles.xml", f"<office:document-styles {OPEN}>{STYLES}</office:document-styles>".encode()),
            ("META-INF/manifest.xml", b'<manifest:manifest xmlns:manifest="urn:m"/>'),
        ],
        zipfile.ZIP_STORED,
    )


def ods_sheet(name: str, *rows: str) -> str:
    """Return the XML of a sheet of an ODS."""
    return f'<table:table table:name="{name}">{"".join(rows)}</table:table>'


def ods_row(*texts: str, repeated: str = "") -> str:
    """Return the XML of a row of texts."""
    cells = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{each}</text:p></table:table-cell>'
        for each in texts
    )
    return f"<table:table-row {repeated}>{cells}</table:table-row>"


def epub_of(*chapters: str, **members: str) -> bytes:
    """Return an EPUB with these bodies of XHTML; `members`: others by their paths, with __ for a slash."""
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    about = '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>no</dc:title></metadata>'
    place = '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles>'
    container = f'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">{place}</container>'
    book = f"{about}<manifest>{items}</manifest><spine>{order}</spine>"
    return zip_of(
        [
            ("mimetype", b"application/epub+zip"),
            ("META-INF/container.xml", container.encode()),
            ("OEBPS/book.opf", f'<package xmlns="http://www.idpf.org/2007/opf">{book}</package>'.encode()),
            *(
                (
                    f"OEBPS/text/c {n}.xhtml",
                    f"<html><head><title>no</title></head><body>{body}</body></html>".encode(),
                )
                for n, body in enumerate(chapters)
            ),
            *((name.replace("__", "/"), data.encode()) for name, data in members.items()),
        ]
    )


DOCUMENTS: dict[str, bytes] = {
    PDF: pdf_of("one", "two"),
    DOCX: docx_of(paragraph("one") + paragraph("two")),
    XLSX: xlsx_of({"Totals": [["one", "two"]]}),
    PPTX: pptx_of(["one", "two"]),
    ODS: ods_of(ods_sheet("Totals", ods_row("one", "two"))),
    EPUB: epub_of("<p>one</p>", "<p>two</p>"),
}
"""A small document of each kind, by its suffix."""

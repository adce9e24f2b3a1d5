"""The parts of a document that is a zip archive, as events of XML.

Only names of elements without their namespaces are looked at: programs write the same elements in two
namespaces. Entities are refused, so none can grow; what is outside of the archive has no name here.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote
from xml.parsers import expat

from fdstore.files.documents.writing import NoText

CHUNK_BYTES = 1 << 16

Start = Callable[[str, Mapping[str, str]], None]


class Relation(NamedTuple):
    """What a part refers to: the last word of the type, and the path in the archive."""

    kind: str
    target: str


class Parts:
    """A zip archive of parts."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise NoText("damaged", f"it is damaged: {error}") from error
        self._names = set(self._archive.namelist())

    @property
    def paths(self) -> list[str]:
        """The paths of the parts, in their order."""
        return self._archive.namelist()

    def __contains__(self, path: str) -> bool:
        return path in self._names

    def parse(
        self,
        path: str,
        start: Start,
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> None:
        """Call these with the names of elements, their attributes and texts. Raises `NoText`."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = lambda name, given: start(
            _local(name), {_attribute(each): value for each, value in given.items()}
        )
        if end is not None:
            parser.EndElementHandler = lambda name: end(_local(name))
        if text is not None:
            parser.CharacterDataHandler = text
        parser.EntityDeclHandler = refuse_entities
        try:
            for block in self.blocks(path):
                parser.Parse(block, False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise NoText("damaged", f"its part {path:.80} is damaged: {error}") from error

    def blocks(self, path: str) -> Iterator[bytes]:
        """Yield a part in pieces. Raises `NoText`."""
        try:
            with self._archive.open(path) as part:
                while block := part.read(CHUNK_BYTES):
                    yield block
        except KeyError as error:
            raise NoText("damaged", f"it has no part {path:.80}") from error
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
            raise NoText("damaged", f"its part {path:.80} is damaged: {error}") from error

    def relations(self, path: str) -> dict[str, Relation]:
        """Return what a part refers to, by ids; of "" the whole document."""
        folder, name = posixpath.split(path)
        listed = posixpath.join(folder, "_rels", f"{name}.rels")
        found: dict[str, Relation] = {}

        def start(name: str, given: Mapping[str, str]) -> None:
            if name == "Relationship" and given.get("TargetMode") != "External":
                target = given.get("Target", "")
                joined = target[1:] if target.startswith("/") else resolve(folder, target)
                found[given.get("Id", "")] = Relation(given.get("Type", "").rpartition("/")[2], joined)

        if listed in self:
            self.parse(listed, start)
        return found

    def main(self, usual: str) -> str:
        """Return the path of the part that the document begins with."""
        targets = [each.target for each in self.relations("").values() if each.kind == "officeDocument"]
        return next((target for target in targets if target in self), usual)


def resolve(folder: str, target: str) -> str:
    """Return the path of what a part in a folder refers to.

    >>> resolve("OEBPS", "text/one%20two.xhtml#a"), resolve("ppt/slides", "../notes/1.xml")
    ('OEBPS/text/one two.xhtml', 'ppt/notes/1.xml')
    """
    return posixpath.normpath(posixpath.join(folder, unquote(target.partition("#")[0])))


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _attribute(name: str) -> str:
    """Return the name of an attribute: `relation` for the id of a relation, beside which there may be another
    `id`."""
    namespace, _, local = name.rpartition(" ")
    return "relation" if local == "id" and namespace.endswith("/relationships") else local


def refuse_entities(*_: object) -> None:
    raise NoText("damaged", "it declares entities, which no document of this kind has")

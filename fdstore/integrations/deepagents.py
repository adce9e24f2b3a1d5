"""deepagents: a backend whose files are named descriptors.

    agent = create_deep_agent(model, backend=FdstoreBackend(fdstore.connect()))

A path is the name of a descriptor: `/notes/plan.md` is `name:/notes/plan.md`, for every client of the
process. Reading a window costs what the window costs, whatever the size of the file. A write replaces a file
in one atomic step, and an edit never overwrites another agent's. Text is stored as text, anything else as
bytes. To keep only what deepagents itself moves out of the messages:

    CompositeBackend(default=StateBackend(), routes={"/large_tool_results/": FdstoreBackend(store)})

Each thread has files of its own, in the process that is named by its `thread_id` (see
`process_name_of_thread`); with a `process`, all threads share one set of files. Failures are returned as the
protocol's errors.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec, TypeVar

from fdstore.client import Process, Store
from fdstore.errors import (
    Conflict,
    FDStoreError,
    InvalidArgument,
    MissingExtra,
    NotFound,
    NotText,
    PositionOutOfRange,
    TooLarge,
)
from fdstore.integrations.process_name import process_name_of_thread
from fdstore.integrations.thread_tools import MAX_THREADS
from fdstore.model.records import Descriptor, Slice, TreeLimits
from fdstore.setup.optional_packages import how_to_install
from fdstore.store.keys import check_root
from fdstore.store.recent import Recent
from fdstore.text.names import name_id
from fdstore.text.utf8 import is_utf8

try:
    import re2
    from deepagents.backends.protocol import (
        BackendProtocol,
        DeleteResult,
        EditResult,
        FileData,
        FileDownloadResponse,
        FileInfo,
        FileUploadResponse,
        GlobResult,
        GrepMatch,
        GrepResult,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.utils import (
        InvalidGlobPatternError,
        compile_grep_include_glob,
        normalize_read_bounds,
        perform_string_replacement,
    )
    from langgraph.config import get_config
except ImportError as error:
    raise MissingExtra("deepagents", how_to_install("deepagents")) from error

P = ParamSpec("P")
R = TypeVar("R")

MAX_READ_CHARS = 2_000_000
"""The longest window that is read at once; deepagents shows a model far less of it."""

MAX_MATCHES = 10_000
"""The most matches that are found in one file."""

EDIT_ATTEMPTS = 5
"""The most tries of an edit if other agents write the file meanwhile."""


def _failing_as(result: Callable[..., R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the errors of a method as a result of the protocol."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @wraps(method)
        def run(*args: P.args, **options: P.kwargs) -> R:
            try:
                return method(*args, **options)
            except (FDStoreError, InvalidGlobPatternError) as error:
                return result(error=_said(error))

        return run

    return decorate


class FdstoreBackend(BackendProtocol):
    r"""Files of deep agents as named descriptors. Awaited calls run in threads.

    store    a store of `fdstore.connect`
    process  name of the process that holds the files. None: each thread has its own
    limits   of the trees that are made here

    Raises `InvalidArgument`.

    >>> backend = FdstoreBackend(store, process="files")
    >>> backend.write("/notes/plan.md", "# Plan\nRead the log.\n").error
    >>> backend.edit("/notes/plan.md", "Read", "Search").occurrences
    1
    >>> backend.read("/notes/plan.md", offset=1).file_data["content"]
    'Search the log.\n'
    >>> backend.grep("log").matches
    [{'path': '/notes/plan.md', 'line': 2, 'text': 'Search the log.'}]
    """

    def __init__(self, store: Store, *, process: str | None = None, limits: TreeLimits | None = None) -> None:
        if not isinstance(store, Store):
            raise InvalidArgument("store", "a store of fdstore.connect() is needed")
        self._store = store
        self._process = None if process is None else check_root(process)
        self._limits = limits
        self._opened: Recent[str, Process] = Recent(MAX_THREADS)

    @_failing_as(LsResult)
    def ls(self, path: str) -> LsResult:
        """List a directory: what is directly in it; directories end in a slash."""
        top = path.rstrip("/") + "/"
        entries = {}
        for descriptor in self._files(top):
            name, slash, _ = _path(descriptor)[len(top) :].partition("/")
            directory = FileInfo(path=top + name + "/", is_dir=True, size=0, modified_at="")
            entries[top + name + slash] = directory if slash else _info(descriptor)
        return LsResult(entries=[entries[each] for each in sorted(entries)])

    @_failing_as(ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a text, or all of a file of bytes, which is Base64 then. Of a window of more than 2
        million characters, the first lines are read, and of a line that is longer the beginning."""
        offset, limit = normalize_read_bounds(offset, limit)
        fd, process = name_id(file_path), self._open()
        try:
            return _window(_read_lines(process, fd, offset + 1, max(limit, 1)), limit)
        except NotText:
            data = base64.b64encode(process.read_bytes(fd)).decode("ascii")
            return ReadResult(file_data=FileData(content=data, encoding="base64"))
        except NotFound:
            return ReadResult(error=f"File '{file_path}' not found")
        except PositionOutOfRange:
            return _past_the_end(process, file_path, offset)

    @_failing_as(WriteResult)
    def write(self, file_path: str, content: str) -> WriteResult:
        """Create or replace a file."""
        self._put(file_path, content)
        return WriteResult(path=file_path)

    @_failing_as(EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a text in a file. What another agent writes meanwhile is edited, not lost."""
        process = self._open()
        for _ in range(EDIT_ATTEMPTS):
            found = process.find(file_path)
            if found is None:
                return EditResult(error=f"Error: File '{file_path}' not found")
            if found.kind == "bytes":
                return EditResult(error="Error: Cannot edit binary files with text replacements.")
            text = process.read(found.fd, read_all=True).text
            new = perform_string_replacement(text, old_string, new_string, replace_all)
            if isinstance(new, str):
                return EditResult(error=new)
            try:
                process.put(file_path, new[0], found.media_type, expect=found)
            except Conflict:
                continue
            return EditResult(path=file_path, occurrences=new[1])
        return EditResult(error=f"Error: '{file_path}' is being written by others; try again")

    @_failing_as(DeleteResult)
    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a directory with all below it."""
        process, base = self._open(), file_path.rstrip("/")
        found = [*self._files(base + "/")]
        if base and (file := process.find(base)) is not None:
            found.append(file)
        for descriptor in found:
            process.close(descriptor.fd)
        if not found:
            return DeleteResult(error=f"Error: '{file_path}' not found")
        return DeleteResult(path=file_path)

    @_failing_as(GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by their path, the newest first."""
        found = sorted(self._matching(pattern, path), key=lambda d: d.created_at, reverse=True)
        return GlobResult(matches=[_info(descriptor) for descriptor in found])

    @_failing_as(GrepResult)
    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Find the lines that contain a text, up to 10 000 in a file. Of a very long line, the part around
        the text is shown."""
        process, matches, truncated = self._open(), list[GrepMatch](), False
        for descriptor in self._matching(glob, path):
            if descriptor.kind == "bytes" or truncated:
                continue
            room = MAX_MATCHES if max_count is None else min(max_count - len(matches), MAX_MATCHES)
            try:
                found = process.search(descriptor.fd, re2.escape(pattern), max_matches=max(room, 1))
            except NotFound:  # it was deleted meanwhile
                continue
            hits = found.hits[: max(room, 0)]
            matches += [GrepMatch(path=_path(descriptor), line=hit.line, text=hit.text) for hit in hits]
            truncated = found.matches > len(hits)
        return GrepResult(matches=matches, truncated=truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Store files: UTF-8 as text, anything else as bytes."""
        return [FileUploadResponse(path=path, error=self._upload(path, data)) for path, data in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return the bytes of files."""
        return [self._download(path) for path in paths]

    def _open(self) -> Process:
        name = self._process
        if name is None:
            try:
                thread = get_config().get("configurable", {}).get("thread_id")
            except RuntimeError:
                thread = None
            if not thread:
                raise InvalidArgument("process", "name one, or run the agent with a thread_id")
            name = process_name_of_thread(str(thread))
        found = self._opened.get(name)
        return found or self._opened.first(name, self._store.process(name, limits=self._limits))

    def _put(self, path: str, content: str | bytes) -> None:
        process = self._open()
        try:
            process.put(path, content)
        except NotFound:  # its tree was removed, and is created again
            self._store.process(process.id, limits=self._limits)
            process.put(path, content)

    def _files(self, prefix: str) -> list[Descriptor]:
        try:
            return self._open().list(prefix=prefix)
        except NotFound:  # its tree was removed
            return []

    def _matching(self, glob: str | None, path: str | None) -> list[Descriptor]:
        """Return the files below a path, or the one at it, whose paths from there match a pattern."""
        top = "/" + (path or "/").strip("/")
        matches = compile_grep_include_glob(glob) if glob else None
        file = self._open().find(top) if top != "/" else None
        found = self._files(top.rstrip("/") + "/") if file is None else [file]
        start = len(top.rstrip("/")) + 1 if file is None else top.rfind("/") + 1
        return [d for d in found if matches is None or matches(_path(d)[start:])]

    def _upload(self, path: str, data: bytes) -> str | None:
        try:
            self._put(_absolute(path), data.decode("utf-8") if is_utf8(data) else data)
        except FDStoreError as error:
            return _code(error)
        return None

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            data = self._open().read_bytes(name_id(_absolute(path)))
        except NotFound:
            error = "is_directory" if self._files(path.rstrip("/") + "/") else "file_not_found"
            return FileDownloadResponse(path=path, error=error)
        except FDStoreError as raised:
            return FileDownloadResponse(path=path, error=_code(raised))
        return FileDownloadResponse(path=path, content=data)


def _read_lines(process: Process, fd: str, start: int, count: int) -> Slice:
    """Read up to `count` lines, as many as are not too long together."""
    while True:
        try:
            return process.read(fd, mode="line", start=start, count=count, max_chars=MAX_READ_CHARS)
        except TooLarge:
            if count == 1:
                break
            count //= 2
    [line] = process.search(f"{fd}#L{start}", "^", max_matches=1).hits
    return process.read(fd, mode="char", start=line.line_start, count=MAX_READ_CHARS)


def _past_the_end(process: Process, file_path: str, offset: int) -> ReadResult:
    found = process.find(file_path)
    lines = 0 if found is None else found.lines
    if lines == 0:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"))
    return ReadResult(error=f"Line offset {offset} exceeds file length ({lines} lines)")


def _said(error: Exception) -> str:
    return f"Error: {error}"


def _code(error: FDStoreError) -> str:
    """Return an error as the responses for single files have it."""
    return "invalid_path" if isinstance(error, InvalidArgument) else _said(error)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise InvalidArgument("path", "must begin with a slash")
    return path


def _path(descriptor: Descriptor) -> str:
    return descriptor.fd.removeprefix("name:")


def _info(descriptor: Descriptor) -> FileInfo:
    modified = datetime.fromtimestamp(descriptor.created_at, UTC).isoformat()
    return FileInfo(path=_path(descriptor), is_dir=False, size=descriptor.bytes, modified_at=modified)


def _window(found: Slice, limit: int) -> ReadResult:
    """Return lines as the protocol has them: line ends as LF, no positions where nothing is to be seen."""
    data = FileData(content=found.text.replace("\r\n", "\n"), encoding="utf-8")
    first, last = map(int, found.lines.split("-"))
    is_whole = found.total_lines in (0, last - first + 1)
    if is_whole and not found.text.strip():
        return ReadResult(file_data=data)
    if limit == 0:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"), no_lines_requested=True)
    return ReadResult(
        file_data=data,
        total_lines=found.total_lines,
        start_line=first,
        end_line=last,
        next_offset=last if last < found.total_lines else None,
    )

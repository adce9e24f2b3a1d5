"""The root class of all errors, and the errors raised by every part of fdstore."""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform

SHOWN_IDS = 40
"""Maximum number of existing ids that a `not_found` lists."""

SHOWN_ID_CHARS = 2000
"""Maximum length of the list, or of its first id."""


def quoted(value: object, limit: int = 80) -> str:
    """Return `value` quoted for a message: control characters escaped, cut to `limit` characters."""
    text = value if isinstance(value, str) else type(value).__name__
    shown = text[:limit].encode("unicode_escape", "backslashreplace").decode("ascii")
    if text.isprintable():
        shown = text[:limit]
    return repr(shown).replace("\\\\", "\\") + ("..." if len(text) > limit else "")


def joined(said: str, more: str) -> str:
    """Return a sentence that goes on with a remedy or a consequence: after a `;`, without its full stop.

    >>> joined("it is damaged", "--bytes stores it"), joined("Data format error.", "--bytes stores it")
    ('it is damaged; --bytes stores it', 'Data format error; --bytes stores it')
    >>> joined("Did you mean 'install'?", "the output stays as it was")
    "Did you mean 'install'? The output stays as it was"
    """
    said = said.rstrip()
    if said.endswith(("?", "!")):
        return f"{said} {more[:1].upper()}{more[1:]}"
    return f"{said if said.endswith('..') else said.removesuffix('.')}; {more}"


def given(*arguments: Any) -> tuple[Any, ...]:
    """Return the arguments of the example of an error."""
    return arguments


@dataclass_transform(eq_default=False)
class FDStoreError(Exception):
    """Base class of all errors of fdstore.

    A subclass declares one kind of error: its fields, annotated in the order of the constructor's arguments;
    a sentence; what to do; and its consequences, which callers act on.

    >>> class NoSuchColour(FDStoreError):
    ...     type = "not_found"
    ...     says = "there is no colour {name}; use one of {known}"
    ...     name: str
    ...     known: str = "red, green"
    >>> error = NoSuchColour("blue")
    >>> str(error), error.args
    ('there is no colour blue; use one of red, green', ('blue', 'red, green'))
    """

    type: ClassVar[str] = "error"
    """The word that models see and `--json` prints. Classes of one type are one kind of failure."""

    says: ClassVar[str] = ""
    """The text, in which the fields stand in braces. A class whose text depends on more has a `__str__`."""

    remedy: ClassVar[str] = ""
    """What to do, for the page of errors."""

    sample: ClassVar[tuple[Any, ...]] = ()
    """Arguments of an example."""

    http: ClassVar[int] = 400
    """The status of an HTTP response."""

    of_request: ClassVar[bool] = False
    """Another request would avoid it. All others are the store's."""

    stops: ClassVar[bool] = False
    """Neither a model nor code can do anything about it: it ends the attempt, or the call of a host."""

    retried: ClassVar[bool] = False
    """A failure of the store, not of an agent: another attempt continues once the store answers again."""

    waited_for: ClassVar[bool] = False
    """The store answers, and will do what was asked when it can again."""

    readable: ClassVar[bool] = False
    """The store takes no writes, and can be read."""

    skipped: ClassVar[bool] = False
    """It is of one record: lists leave that out, and say so."""

    reply: ClassVar[str] = ""
    """The first word of a script's reply that means it. The facts after it are the fields, but for a first
    one `process` or `tree`: the one for which the script was called."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):  # with fields of its own alone
            code = cls.__init__.__code__
            cls._fields = code.co_varnames[1 : code.co_argcount]
        else:
            own = (name for name in vars(cls).get("__annotations__", ()) if name not in cls._fields)
            cls._fields = (*cls._fields, *own)

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        given = dict(zip(fields, values, strict=False)) | named
        missing = [name for name in fields if name not in given and not hasattr(type(self), name)]
        if len(given) != len(values) + len(named) or not given.keys() <= set(fields) or missing:
            raise TypeError(f"{type(self).__name__} takes {', '.join(fields)}; not given: {missing}")
        given = {name: given[name] if name in given else getattr(self, name) for name in fields}
        super().__init__(*given.values())
        vars(self).update(given)

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Return the names of the constructor's arguments, which are attributes of the error too."""
        return cls._fields

    def __str__(self) -> str:
        return self.says.format_map(vars(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class NotFound(FDStoreError):
    """The descriptor, process or tree does not exist. `removed_at`: when the tree that had this descriptor
    was removed, in seconds since the epoch; a later tree has its name. `not_of`: the process that was asked,
    whose numbers begin above this one, because an earlier conversation had it."""

    type = "not_found"
    remedy = "Use an id that it names; `known` has them. Ids are never reused, nor by a later tree."
    sample = given("fd:9", ("fd:1", "fd:2"))
    http = 404
    of_request = True

    what: str
    known: tuple[str, ...] = ()
    removed_at: int | None = None
    not_of: str | None = None

    def __str__(self) -> str:
        missing = f"{self.what} does not exist"
        if self.removed_at is not None:
            from datetime import UTC, datetime  # errors are imported by programs that must start fast

            removed = datetime.fromtimestamp(self.removed_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            missing = f"{self.what} no longer exists: its tree was removed at {removed}"
        elif self.not_of is not None:
            missing = f"{self.what} was given by another process, not by {self.not_of}, which cannot read it"
        if not self.known:
            is_all = self.what.startswith(("fd:", "name:", "process ", "tree "))
            return f"{missing}; nothing exists here yet" if is_all else missing
        shown = self.known[:SHOWN_IDS]
        while len(shown) > 1 and sum(map(len, shown)) + 2 * len(shown) > SHOWN_ID_CHARS:
            shown = shown[:-1]
        more = len(self.known) - len(shown)
        rest = f" and {more} more" if more > 0 else ""
        return f"{missing}; there are: {', '.join(shown)}{rest}"


class NoSuchValue(NotFound):
    """A JSON content has no value at this pointer. `longest` is the part of it that exists, `there` says what
    stands there."""

    says = "{what} does not exist; {longest} is {there}"
    remedy = "Correct the pointer: `longest` is the part of it that exists."
    sample = given("fd:1#J/results/9", "fd:1#J/results", "an array of 3")

    longest: str = ""
    there: str = ""

    def __init__(self, what: str, longest: str, there: str) -> None:
        FDStoreError.__init__(self, what, longest, there)
        self.known = ()

    def __str__(self) -> str:
        return FDStoreError.__str__(self)


class InvalidArgument(FDStoreError):
    """An argument has the wrong type, form or size."""

    type = "invalid_argument"
    remedy = "Correct the argument that it names. Nothing was done."
    sample = given("count", "must be at least 1")
    of_request = True

    argument: str
    problem: str

    def __str__(self) -> str:
        return f"{self.argument}: {self.problem}" if self.argument else self.problem


class NotAllowed(FDStoreError):
    """A program uses something that the operator of this worker does not allow."""

    type = "permission_error"
    says = "{what} is not allowed on this worker; its operator allows it with {option}"
    remedy = (
        "Stay within what was permitted, or have the operator permit more: directories, functions and "
        "commands by options of `fdstore worker`."
    )
    sample = given("the function tools:search", "--allow-python 'tools:search'")
    http = 403
    of_request = True

    what: str
    option: str


class UnknownOutcome(FDStoreError):
    """The store became unreachable after a write was sent, which may or may not have happened."""

    type = "unknown_outcome"
    says = "whether {what} happened is unknown: the store is out of reach; look before repeating"
    remedy = (
        "Find out whether it happened before you repeat it. A lost reply is asked for again for 10 s first: "
        "the store was out of reach for longer, or a worker was lost during the call."
    )
    sample = given("the write to fd:3")
    stops = retried = True

    what: str


class MissingExtra(FDStoreError, ImportError):
    """A Python package of an extra is required and not installed. Nothing was started. It is an `ImportError`
    too, for callers that do without the package."""

    type = "missing_extra"
    says = "this needs the Python package {package!r}; install it with: {how}"
    remedy = "Install the extra."
    sample = given("duckdb", "pip install '.[sql]'")

    package: str
    how: str

    def __init__(self, package: str, how: str) -> None:
        FDStoreError.__init__(self, package, how)
        self.name = package

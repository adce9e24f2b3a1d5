"""Errors have stable types, survive pickling, and stay short for any argument."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path

import pytest

from fdstore import errors
from fdstore.errors import FDStoreError, MissingExtra, NotFound, SpawnLimit, quoted
from fdstore.store.tree_limits import LIMITS

CONTRACT_TYPES = {
    *("not_found", "invalid_page", "invalid_range", "invalid_argument", "too_large", "file_exists"),
    *("file_not_found", "permission_error", "write_error", "stream_closed", "stream_broken", "fenced"),
    *("timeout", "unknown_program", "spawn_limit", "quota_exceeded", "cancelled", "unknown_outcome"),
    *("store_full", "store_readonly", "store_unavailable", "unsafe_store", "store_lost_data", "conflict"),
    *("missing_extra", "no_worker", "not_text"),
}
SHARED = {"permission_error", "unsafe_store", "invalid_argument", "conflict", "store_unavailable"}
"""Types that several classes have: permissions of Redis and of the file system; stores that are unsafe,
of a newer version or read-only; arguments and program files; names and trees in conflict;
Redis, and the object store of cold contents, without which an agent goes on."""
CLASSES = errors.all_errors()
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"


def example(kind: type[FDStoreError]) -> FDStoreError:
    return kind(*kind.sample)


def test_error_types_match_the_contract_and_the_page_of_errors() -> None:
    """`make generate` adds a type to the page, and takes none away."""
    types = {kind.type for kind in CLASSES}

    assert types >= CONTRACT_TYPES
    assert types == set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))


def test_every_class_of_the_package_is_exported_by_its_name() -> None:
    folder = Path(errors.__file__).parent
    found = {
        each for file in folder.glob("*.py") for each in re.findall(r"^class (\w+)", file.read_text(), re.M)
    }

    assert found == {kind.__name__ for kind in CLASSES} | {"FDStoreError"}
    assert found <= set(errors.__all__)


def test_only_a_subclass_shares_its_error_type() -> None:
    for first in CLASSES:
        for second in CLASSES:
            if first.type == second.type and first is not second and first.type not in SHARED:
                assert issubclass(first, second) or issubclass(second, first)


@pytest.mark.parametrize("kind", CLASSES)
def test_args_equal_the_fields_which_are_attributes(kind: type[FDStoreError]) -> None:
    error = example(kind)

    assert error.args == tuple(getattr(error, name) for name in kind.fields())
    assert error.args[: len(kind.sample)] == kind.sample


@pytest.mark.parametrize("kind", CLASSES)
def test_fields_are_given_in_order_or_by_name_and_each_once(kind: type[FDStoreError]) -> None:
    given = dict(zip(kind.fields(), kind.sample, strict=False))

    assert str(kind(**given)) == str(example(kind))
    for wrong in ((*example(kind).args, "one more"), ()):
        with pytest.raises(TypeError):
            kind(*wrong)
    with pytest.raises(TypeError):
        kind(*kind.sample, **{kind.fields()[0]: kind.sample[0]})
    with pytest.raises(TypeError):
        kind(*kind.sample, unknown=1)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling(kind: type[FDStoreError], protocol: int) -> None:
    error = example(kind)

    again = pickle.loads(pickle.dumps(error, protocol))

    assert type(again) is kind
    assert (again.args, str(again), vars(again)) == (error.args, str(error), vars(error))


@pytest.mark.parametrize("kind", CLASSES)
def test_a_message_is_one_line(kind: type[FDStoreError]) -> None:
    message = str(example(kind))

    assert len(message.splitlines()) == 1
    assert not message.endswith(".")
    assert repr(example(kind)) == f"{kind.__name__}({message!r})"


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_says_what_to_do(kind: type[FDStoreError]) -> None:
    assert kind.remedy.endswith(".")


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_is_documented(kind: type[FDStoreError]) -> None:
    assert inspect.getdoc(kind) != inspect.getdoc(FDStoreError)


@pytest.mark.parametrize(
    "error",
    [
        errors.TargetExists("p" * 10**6),
        errors.TargetMissing("p" * 10**6),
        errors.PathRefused("p" * 10**6, "it is a directory"),
        errors.UnknownProgram("x" * 10**6, ("grep",)),
        NotFound("fd:9", tuple(f"fd:{n}" for n in range(1, 9))),
        NotFound("fd:9", ("fd:12",), 1_800_000_000),
        NotFound("fd:99999", tuple(f"fd:{n}" for n in range(1, 10_001))),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_message_never_contains_a_whole_argument(error: FDStoreError) -> None:
    assert len(str(error)) < 500


@pytest.mark.parametrize("limit", [name for name in LIMITS if name.startswith("tree_")])
def test_a_limit_advises_to_end_processes_only_where_that_makes_room(limit: str) -> None:
    said = str(SpawnLimit(limit, 8))

    assert ("end processes" in said) == (limit == "tree_live"), said


def test_a_message_lists_existing_ids_up_to_a_limit() -> None:
    error = NotFound("fd:99", tuple(f"fd:{n}" for n in range(1, 51)))

    assert str(error).startswith("fd:99 does not exist; there are: fd:1, fd:2, ")
    assert str(error).endswith("fd:40 and 10 more")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "'plain'"),
        ("naïve 漢", "'naïve 漢'"),
        ("a\nb", "'a\\nb'"),
        ("\x1b[31m", "'\\x1b[31m'"),
        ("\ud800", "'\\ud800'"),
        ("x" * 100, "'" + "x" * 80 + "'..."),
        (10**5000, "'int'"),
        (float("nan"), "'float'"),
        (None, "'NoneType'"),
        (["x" * 10**6], "'list'"),
    ],
    ids=range(10),
)
def test_values_are_quoted_short_and_printable(value: object, shown: str) -> None:
    assert quoted(value) == shown
    assert quoted(value).isprintable()


def test_a_missing_package_is_an_import_error_too() -> None:
    error = MissingExtra("duckdb", "pip install '.[sql]'")

    assert isinstance(error, ImportError)
    assert (error.name, error.type) == ("duckdb", "missing_extra")
    assert str(error) == "this needs the Python package 'duckdb'; install it with: pip install '.[sql]'"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)

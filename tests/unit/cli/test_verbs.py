"""The command line's own rules: verbs that cannot be loaded, tables, sizes, trees, progress."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fdstore import cli
from fdstore.cli import session
from fdstore.cli.processes import as_trees
from fdstore.cli.tables import Column, Table, draw, number, shorten, width
from fdstore.model.records import ProcessRecord
from fdstore.setup.logs import VisibleFormatter
from fdstore.text.layout import show_controls
from fdstore.text.quantities import ago, duration, format_size

cells = st.text(max_size=12) | st.sampled_from(["漢字", "e\u0301", "\x1b[31m", "a\nb"])


@pytest.fixture
def verb_from(monkeypatch):
    def place(home: str) -> None:
        monkeypatch.setitem(cli.VERBS["Store"], "down", (home, "Stop it."))

    return place


def test_a_verb_whose_module_is_missing_breaks_neither_help_nor_the_others(verb_from):
    verb_from("fdstore.cli.absent:down")

    helped = CliRunner().invoke(cli.cli, ["--help"])
    called = CliRunner().invoke(cli.cli, ["down"])

    assert (helped.exit_code, called.exit_code) == (0, 1)
    assert "Stop it." in helped.output
    assert called.output == "Error: this installation has no `fdstore down`\n"


def test_a_verb_that_needs_a_package_says_how_to_get_it(verb_from, monkeypatch, tmp_path):
    (tmp_path / "needs_much.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    verb_from("needs_much:down")

    called = CliRunner().invoke(cli.cli, ["down"])

    assert called.exit_code == 1
    assert "needs the Python package 'no_such_package'" in called.output
    assert "pip install '.[agents]' in a checkout of fdstore" in called.output


def test_every_verb_is_listed_once_and_its_line_fits():
    names = [name for section in (*cli.VERBS.values(), cli.HIDDEN) for name in section]

    assert len(names) == len(set(names))
    for section in cli.VERBS.values():
        for _, line in section.values():
            assert line.endswith(".")
            assert len(line) < 66


VERBS = [name for section in cli.VERBS.values() for name in section]


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_a_verb_lists_its_own_options_first_and_in_one_style(name):
    command = cli.load_verb(name)
    common = [parameter.name for parameter in session.common_options()]
    names = [parameter.name for parameter in command.params]

    if name not in ("worker", "redis-cli", "redis-server", "completion"):  # which pass on what follows them
        assert names[-len(common) :] == common
        kinds = [isinstance(parameter, click.Option) for parameter in command.params]
        assert kinds == sorted(kinds)
    for parameter in command.params:
        if not isinstance(parameter, click.Option):
            continue
        assert re.fullmatch(r"[A-Z].*(\.|\])", parameter.help, re.DOTALL), parameter.help
        assert "(default" not in parameter.help
        takes_word = not parameter.is_flag and not isinstance(parameter.type, click.Choice)
        assert not takes_word or parameter.metavar, parameter.opts


@pytest.mark.parametrize("path", sorted(Path(cli.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_verbs_print_only_through_the_output_module(path):
    if path.stem == "output":
        return
    code = path.read_text("utf-8")
    if path.stem == "progress":  # a line that is drawn again and again, for a terminal alone
        code = code.partition("def draw")[0]

    assert not re.findall(r"(?m)click\.s?echo|^\s*print\(|sys\.std(?:out|err)\.(?:write|buffer)", code)


def test_a_log_message_is_one_line_without_control_characters():
    formatter = VisibleFormatter("%(levelname)s: %(message)s")
    try:
        raise ValueError("\x1b[2Jone\ntwo\x9b")
    except ValueError:
        record = logging.LogRecord("x", 30, "", 1, "%s\r\nERROR: %s", ("a\x1b", "\u202e"), sys.exc_info())

    message, *trace = formatter.format(record).split("\n")

    assert message == r"WARNING: a\u{1b}\u{d}\u{a}ERROR: \u{202e}"
    assert trace[-2:] == [r"ValueError: \u{1b}[2Jone", r"two\u{9b}"]


@given(st.integers(0, 10**18))
def test_a_size_is_short(count):
    assert len(format_size(count)) <= 12 or count >= 10**15


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_times_are_never_negative(at_s, now_s):
    assert "-" not in duration(now_s - at_s)
    assert ago(at_s, now_s)


@given(st.text(), st.integers(3, 20))
def test_a_shortened_text_fits(text, columns):
    assert width(shorten(text, columns)) <= columns


@given(st.lists(st.tuples(cells, cells, cells), max_size=5))
def test_columns_of_a_table_begin_where_their_header_does(rows):
    lines = draw(Table((Column("A"), number("B"), Column("C"))), rows).lines

    assert len(lines) == len(rows) + 1
    assert all(char.isprintable() or char.isspace() or not char.isascii() for line in lines for char in line)
    third = width(lines[0][: lines[0].index("C")])
    for line, (_, _, last) in zip(lines[1:], rows, strict=True):
        shown = show_controls(last, keep="").rstrip()
        assert line.endswith(shown)
        if shown:
            assert width(line.removesuffix(shown)) == third


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5), st.integers(30, 60))
def test_a_table_is_cut_to_the_terminal_in_the_column_that_may_be_cut(texts, columns):
    declared = Table((Column("FD"), Column("SOURCE", least=8)))

    drawn = draw(declared, [[f"fd:{i}", text] for i, text in enumerate(texts)], columns=columns)

    assert all(width(line) <= columns for line in drawn.lines)


def test_children_are_drawn_below_their_parents_in_numeric_order():
    born = ["b", "b.2", "b.10", "b.2.1", "a", "lost.1"]

    drawn = [branch + process.id for branch, process in as_trees(record(name) for name in born)]

    assert drawn == ["b", "├─ b.2", "│  └─ b.2.1", "└─ b.10", "a", "lost.1"]


def test_a_tree_may_be_deep():
    deepest = "p" + ".1" * (sys.getrecursionlimit() + 10)
    names = [deepest[: 1 + 2 * depth] for depth in range(sys.getrecursionlimit() + 11)]

    assert [process.id for _, process in as_trees(record(name) for name in names)] == names


def record(name: str) -> ProcessRecord:
    return ProcessRecord(id=name, state="open")

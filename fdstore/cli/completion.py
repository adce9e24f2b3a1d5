"""Shell completion of verbs, options, processes, descriptors and names.

The scripts are click's, except for bash, which splits words at colons: `fd:1` is three words there. So for
bash this module parses the line itself, and returns only the part of a completion after the last colon.

Completion starts no server and prints nothing to stderr; an unreachable store yields no completions. Names
come from a store that others may write to and end up on a command line, so malformed names are left out, and
names with characters that a shell interprets are escaped: by zsh and fish themselves, for bash here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import BashComplete, CompletionItem, ZshComplete, add_completion_class

from fdstore.cli import output
from fdstore.cli.session import COMPLETE_VARIABLE, CliSession, common_options
from fdstore.errors import FDStoreError

if TYPE_CHECKING:
    from fdstore.client import Store

T = TypeVar("T")

MOST = 500
"""The maximum number of completions."""

SOURCE_CHARS = 60

_PROCESS = re.compile(r"[a-z0-9][a-z0-9_-]*(?:\.[0-9]+)*", re.ASCII)
_FD = re.compile(r"fd:[0-9]+|ref:[A-Za-z0-9_.-]+", re.ASCII)
_SPECIAL = re.compile(r"[^\w@%+=:,./-]")
"""The characters that bash may interpret. Letters of any script are no special characters."""
_LAST_WORD = re.compile(r"(?:\\.|[^\s\\])*\Z")

SHELLS = ("bash", "zsh", "fish")


@click.command(params=common_options())
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete verbs, options, processes, descriptors and names.

    \b
    eval "$(fdstore completion bash)"          in ~/.bashrc
    eval "$(fdstore completion zsh)"           in ~/.zshrc, after compinit
    fdstore completion fish | source           in config.fish
    """
    from click.shell_completion import get_completion_class

    register()
    verbs = click.get_current_context().find_root().command
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    output.content(shell_class(verbs, {}, "fdstore", COMPLETE_VARIABLE).source().encode(), raw=True)


BASH = r"""%(complete_func)s() {
    local IFS=$'\n' answer type value
    COMPREPLY=()
    answer=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done <<< "$answer"
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class ColonBash(BashComplete):
    """Completes words with colons in bash."""

    source_template = BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        from click.shell_completion import split_arg_string

        point = int(os.environ["COMP_POINT"])
        data = os.environb[b"COMP_LINE"]
        line = data.decode("utf-8", "replace")
        if point != len(data):  # it counts bytes in the locale C, else characters
            line = line[:point]
        words = split_arg_string(line)
        incomplete = "" if not words or line[-1:].isspace() else words.pop()
        found = _LAST_WORD.search(line)
        self._typed = found[0] if found else ""
        return words[1:], incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the completions; in a word with quotes, only those that need no escape."""
        found = super().get_completions(args, incomplete)
        if not set(self._typed) & set("'\""):
            return found
        return [item for item in found if item.type != "plain" or not _SPECIAL.search(str(item.value))]

    def format_completion(self, item: CompletionItem[Any]) -> str:
        value = str(item.value)
        if item.type == "plain":
            value = _SPECIAL.sub(r"\\\g<0>", value)
            value = value[len(self._before_break(value)) :]
        return f"{item.type},{value}"

    def _before_break(self, value: str) -> str:
        """Return the part of a value that bash has split off: up to the last break in the typed word, which
        may begin with `--option=`."""
        breaks = set(os.environ.get("COMP_WORDBREAKS", "")) & set(":=@")
        at = max((self._typed.rfind(mark) for mark in breaks), default=-1)
        before = self._typed[: at + 1]
        while not value.startswith(before):
            before = before.partition("=")[2]
        return before


def register() -> None:
    """Register the classes of this module with click."""
    add_completion_class(ColonBash, "bash")
    add_completion_class(ZshComplete, "zsh")


def complete_names(command: click.Command, words: Sequence[str]) -> click.Command:
    """Add completion to the parameters of a verb that name processes or descriptors; return the verb.

    `words` are the arguments after it.
    """
    for parameter in command.params:
        names = NAMES.get(str(parameter.metavar).strip("[].").partition("|")[0])
        if names is not None:
            vars(parameter)["shell_complete"] = partial(names, tuple(words))  # click consumes the list
    return command


def processes(words: Sequence[str], context: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Complete the names of roots, and after a complete root the names of all processes of its tree."""
    from fdstore.store.doctor.audit import named_trees

    def names(store: Store) -> list[str]:
        found = [tree.tree for tree in store.run(named_trees(store.prefix))]
        found = [tree for tree in found if tree.startswith(incomplete)]
        root, dot, _ = incomplete.partition(".")
        return [each.id for each in store.tree(root).members] if dot or found == [root] else found

    return [
        CompletionItem(name)
        for name in _completions(_query(context, names, []), incomplete, _PROCESS.fullmatch)
    ]


def roots(words: Sequence[str], context: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Complete the names of trees."""
    return [item for item in processes(words, context, incomplete) if "." not in str(item.value)]


def descriptors(words: Sequence[str], context: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Complete the descriptors of the process named before, with their sources as help."""
    from fdstore.store.contents.descriptors import list_fds
    from fdstore.store.contents.naming import list_names
    from fdstore.store.processes.processes import open_child
    from fdstore.text.layout import show_controls
    from fdstore.text.names import NAME

    # an option without its value, which is what is completed, keeps click from reading the arguments
    first = next((word for word in words if not word.startswith("-")), "")
    process = str(context.params.get("process") or first)

    def sources(store: Store) -> dict[str, str]:
        handle = store.run(open_child(store.prefix, process))
        is_name = incomplete.startswith(NAME)
        found = store.run(list_names(handle, incomplete.removeprefix(NAME)) if is_name else list_fds(handle))
        return {each.fd: show_controls(each.source, keep="")[:SOURCE_CHARS] for each in found}

    nothing: dict[str, str] = {}
    held = _query(context, sources, nothing)
    prefix = f"fd:{incomplete}" if incomplete.isdigit() else incomplete
    return [CompletionItem(fd, help=held[fd]) for fd in _completions(held, prefix, _is_fd)]


def keys(words: Sequence[str], context: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Complete the names of the process named before, without their `name:`."""
    from fdstore.text.names import NAME

    found = descriptors(words, context, NAME + incomplete.removeprefix(NAME))
    return [CompletionItem(item.value.removeprefix(NAME), help=item.help) for item in found]


NAMES = {
    "PROC": processes,
    "TREE": roots,
    "FD": descriptors,
    "SELECTOR": descriptors,
    "KEY": keys,
    "PREFIX": keys,
}
"""Metavar of a parameter -> the function that completes it."""


def _is_fd(fd: str) -> bool:
    """Return whether a shell may show this id, and read it back."""
    from fdstore.text.layout import show_controls
    from fdstore.text.names import NAME

    if not fd.startswith(NAME):
        return _FD.fullmatch(fd) is not None
    # bash drops a comma at the end of what it reads
    return show_controls(fd, keep="") == fd and not fd.endswith((",", " "))


def _completions(names: Iterable[str], incomplete: str, is_valid: Callable[[str], object]) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and is_valid(name)][:MOST]


def _query(context: click.Context, question: Callable[[Store], T], nothing: T) -> T:
    """Return the result of `question`, or `nothing` if the store is unreachable."""
    from fdstore.client import connect

    session = context.find_object(CliSession) or CliSession()
    try:
        url = session.chosen_url
        if url is None:
            server = session.embedded_server()
            if server.status().version is None:
                return nothing
            url = server.url
        with connect(url, session.prefix) as store:
            return question(store)
    except FDStoreError:
        return nothing

"""The reasons for which fdstore ends processes and breaks streams: a row each, with all that follows from it.

A record has a reason as a text: that of a row, with its facts in it, or the words of an error, a model or a
program. `find` returns the row of a text. Scripts know each row by its name in capitals (`script_constants`),
and the tables of reasons in the documentation are made of the rows.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from fdstore.errors import NotAllowed, QuotaExceeded, SpawnLimit
from fdstore.model.lifecycle import EndState, ProcessState

Whose = Literal["agents", "pipelines", "streams"]
_AGENTS: tuple[Whose, ...] = ("agents",)
_PIPELINES: tuple[Whose, ...] = ("pipelines",)
_STREAMS: tuple[Whose, ...] = ("streams",)
_LOST_WRITER = "writer_lost"
_TODAY = "this tree has used the {} of today (UTC); `fdstore limits` shows ceilings"
_OF_PROGRAM, _OF_TREE = "a limit of the program", "a limit of the tree: [Limits](#limits)"

_RAISE = "raise {} in [limits] of {{file}}"
_RAISE_TREE = (
    "raise {} in [limits] of {{file}} (`fdstore limits show {{tree}}` shows what it used, and ceilings)"
)
_TOMORROW = "wait for the next day (UTC), or raise the ceiling: `fdstore limits show {tree}`"


class Reason(msgspec.Struct, frozen=True):
    """A reason of agents, of pipelines, or of streams that any program writes.

    form               its text, with `{}` for each fact; it begins with the name
    of                 what ends or breaks so
    when               what has happened, for people
    to_do              what the operator can do about a failure, in the runbook
    remedy             what can be done before the agent is run again, with the `{file}` of its program,
                       `{process}` and `{tree}`; "" for nothing
    state              the state of a process that ends so
    breaks_streams_as  the reason of the streams that the process was writing; "": the same, and `cancelled`
                       of a cancelled process
    exit_code          of a pipeline without a result, and of the command that waits for it. Not 1: `grep`
                       exits with 1 if nothing matches
    """

    form: str
    of: tuple[Whose, ...]
    when: str
    to_do: str = ""
    remedy: str = ""
    state: EndState = "failed"
    breaks_streams_as: str = ""
    exit_code: int | None = None

    @property
    def name(self) -> str:
        return _first_word(self.form)

    def text(self, *facts: object) -> str:
        """Return the reason with its facts, as records have it.

        >>> MAX_TURNS.text(5)
        'max_turns: 5 answers were given'
        """
        return self.form.format(*facts)


def _first_word(text: str) -> str:
    return re.split(r"\W", text, maxsplit=1)[0]


MAX_TURNS = Reason(
    "max_turns: {} answers were given",
    _AGENTS,
    "it gave the answers that it may",
    _OF_PROGRAM,
    _RAISE.format("max_turns"),
)
WALL_SECONDS = Reason(
    "wall_seconds: {:g} s are over",
    _AGENTS,
    "its time is over",
    _OF_PROGRAM,
    _RAISE.format("wall_seconds"),
)
TOKEN_BUDGET = Reason(
    "token_budget: {} tokens are used",
    _AGENTS,
    "it used the tokens that it may",
    _OF_PROGRAM,
    _RAISE.format("token_budget"),
)
TREE_TOKEN_BUDGET = Reason(
    "tree_token_budget: this tree has used {1} tokens of {0}",
    _AGENTS,
    "its tree used the tokens that it may",
    _OF_TREE,
    _RAISE_TREE.format("tree_token_budget"),
)
TREE_MODEL_CALLS = Reason(
    "tree_model_calls: this tree has used {1} answers of models of {0}",
    _AGENTS,
    "its tree used the answers of models that it may",
    _OF_TREE,
    _RAISE_TREE.format("tree_model_calls"),
)
TREE_TOKENS_PER_DAY = Reason(
    "tree_tokens_per_day: " + _TODAY,
    _AGENTS,
    "its tree used the tokens of today (UTC)",
    _OF_TREE,
    _TOMORROW,
)
TREE_MODEL_CALLS_PER_DAY = Reason(
    "tree_model_calls_per_day: " + _TODAY,
    _AGENTS,
    "its tree used the answers of models of today (UTC)",
    _OF_TREE,
    _TOMORROW,
)
NO_ANSWER = Reason(
    "no_answer: nobody answered question {} within {:g} s",
    _AGENTS,
    "nobody answered its question in time",
    "answer sooner, or set `[people]` `timeout`: [Questions that wait](#questions-that-wait)",
    "answer sooner (`fdstore questions {tree} -f`), or raise timeout in [people] of {file}",
)
POISON = Reason(
    "poison",
    _AGENTS,
    "too many workers died while they ran it",
    "it kills its workers: [Workers that die](#workers-that-die)",
    "find out what killed its workers: `fdstore log {process}`, and their own logs",
    breaks_streams_as=_LOST_WRITER,
)

SIGNAL = Reason("signal {}", _PIPELINES, "signal n kills a stage; the exit code is 128+n", state="exited")
UPSTREAM_BROKEN = Reason(
    "upstream_broken",
    _PIPELINES,
    "the input breaks, after what its stored bytes gave",
    "the writer of its input failed: the input has the reason",
)
WORKER_LOST = Reason(
    "worker_lost",
    _PIPELINES,
    "the worker is lost, or ends; commands never run twice",
    "start it again, if its commands may run twice",
    breaks_streams_as=_LOST_WRITER,
)
SANDBOX = Reason(
    "sandbox",
    _PIPELINES,
    "the sandbox of a stage failed, so there is no result",
    "the last line of stderr says why it failed; run the pipeline again after you fix it",
    exit_code=125,
)
IDLE = Reason("idle", _PIPELINES, "nothing was read or written for `stream_idle_seconds`", _OF_PROGRAM)
WALL = Reason("wall", _PIPELINES, "it ran for `wall_seconds`", _OF_PROGRAM)
BYTES = Reason("bytes", _PIPELINES, "an output has more than `stream_bytes`", _OF_PROGRAM)
REFUSED = Reason(
    f"{NotAllowed.type}: {{}}",
    _PIPELINES,
    "its worker may not run one of its programs",
    "no worker's options allow its commands: [Security](#security)",
    breaks_streams_as=NotAllowed.type,
)
CLOSED = Reason("closed", _PIPELINES, "no process holds its outputs any more", state="exited")

QUOTA_EXCEEDED = Reason(
    QuotaExceeded.type, _PIPELINES + _STREAMS, "the tree has reached its limit of bytes", _OF_TREE
)
KILLED = Reason("killed", _AGENTS + _PIPELINES, "`kill`", state="cancelled")
INTERRUPTED = Reason(
    "interrupted", _AGENTS, "the command that runs it or waits for it was", state="cancelled"
)
SPAWN_LIMIT = Reason(
    SpawnLimit.type,
    _AGENTS,
    "another client used up the room for the copies begun with it",
    state="cancelled",
)
CANCELLED = Reason(
    "cancelled",
    _AGENTS + _STREAMS,
    "the process that writes was cancelled (`fdstore kill`)",
    state="cancelled",
)
WRITER_LOST = Reason(_LOST_WRITER, _STREAMS, "the writer died: its lease was not renewed")

GAVE_UP = "([model] give_up_seconds)"
"""In the reason of an agent whose model was asked again for as long as its program allows."""

LESS_TO_READ = "give it less to read, or take a model with a larger context"
"""What is advised about a conversation that a model refuses for its length."""

_ADVICE = re.compile(rf"the model answered 4.*; (check (?:(?!; ).)+|{LESS_TO_READ})$", re.DOTALL)
"""What the reason of a refused request ends with."""

REASONS = tuple(each for each in globals().values() if isinstance(each, Reason))
_BY_NAME = {each.name: each for each in REASONS}


def text_of(name: str, *facts: object) -> str:
    """Return the text of the reason with this name.

    >>> text_of("tree_model_calls", 30, 31)
    'tree_model_calls: this tree has used 31 answers of models of 30'
    """
    return _BY_NAME[name].text(*facts)


def find(text: str | None) -> Reason | None:
    """Return the reason of which this is the text; None for the words of an error or a program.

    >>> find("max_turns: 5 answers were given") is MAX_TURNS, find("signal 9") is SIGNAL
    (True, True)
    >>> find("closed: by its program"), find("ValueError: no such column"), find("")
    (None, None, None)
    """
    text = text or ""
    found = _BY_NAME.get(_first_word(text))
    if found is None:
        return None
    before, has_facts, _ = found.form.partition("{")
    return found if text == before or (has_facts and text.startswith(before)) else None


def in_words(text: str | None) -> str:
    """Return a reason for people: with what has happened, if it is but the name of a failure, and with whose
    limit was reached.

    >>> in_words("poison"), in_words("killed")
    ('poison: too many workers died while they ran it', 'killed')
    >>> in_words("max_turns: 5 answers were given")
    "max_turns: 5 answers were given; max_turns in its program's [limits] allows no more"
    """
    found = find(text)
    if found is None or text is None:
        return text or ""
    if found.of == _AGENTS and found.to_do == _OF_PROGRAM and text.endswith(found.form.rpartition("}")[2]):
        return f"{text}; {found.name} in its program's [limits] allows no more"
    return f"{text}: {found.when}" if found.state == "failed" and text == found.name else text


def remedy_of(text: str | None, *, file: str, process: str, tree: str) -> str:
    """Return what can be done about the end of an agent before it is run again; "" if that is not known.

    >>> remedy_of("max_turns: 5 answers were given", file="triage.toml", process="t", tree="t")
    'raise max_turns in [limits] of triage.toml'
    """
    found = find(text)
    if found is None and GAVE_UP in (text or ""):
        return f"wait until the model's server answers, or raise give_up_seconds in [model] of {file}"
    return advice_of(text) if found is None else found.remedy.format(file=file, process=process, tree=tree)


def advice_of(text: str | None) -> str:
    """Return what the reason of a refused request advises; "" if it is another reason, or advises nothing.

    >>> advice_of("the model answered 401: invalid x-api-key; check ANTHROPIC_API_KEY")
    'check ANTHROPIC_API_KEY'
    """
    advised = _ADVICE.search(text or "")
    return advised[1] if advised else ""


def broken_as(state: ProcessState, text: str) -> str:
    """Return the reason with which the streams of a process break that ends in `state` for a reason.

    >>> broken_as("failed", "worker_lost"), broken_as("failed", "wall"), broken_as("cancelled", "killed")
    ('writer_lost', 'wall', 'cancelled')
    >>> broken_as("failed", "ValueError: no such column"), broken_as("exited", "")
    ('ValueError: no such column', 'writer_lost')
    """
    if state == "cancelled":
        return CANCELLED.name
    if (reason := find(text)) and reason.breaks_streams_as:
        return reason.breaks_streams_as
    return text or WRITER_LOST.name

"""Questions about texts, as `fdstore ask` asks them: the program of the agent, its task, and its process.

manuals      holds the texts, open like any process of a client
manuals.1    the agent of the first question: it has all texts and variables of manuals, and hands back
manuals.2    what it has made; so the agent of the second question begins with the variables of the first
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fdstore.agents.loop.bundle import Bundle, Program
from fdstore.agents.loop.models.prices import priced
from fdstore.client import Process, Store
from fdstore.model.model_servers import ModelServer
from fdstore.model.records import Descriptor, ModelPrice
from fdstore.results.python_config import AskSection, PriceSection, PythonSection
from fdstore.setup.optional_packages import is_installed
from fdstore.store.processes import processes
from fdstore.text.layout import first_line, show_controls
from fdstore.tools.process_task import SpawnTask, encode_task

SQL_TOOL = "sql_fd"

TABLE_TYPES = ("text/csv", "text/tab-separated-values", "json", "parquet")
"""What media types of tables have in them."""

TABLE_ENDS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")

DEFAULT_MODEL = "claude-sonnet-5-5"

NAME = "ask"
"""The name of the program, and the beginning of the names of processes that are given none."""

TOOLS = ("run_python", "read_fd", "search_fd", "list_fds")

SYSTEM = """\
You answer a question about texts that are too long to read. They are stored; you see where each begins and \
ends.

Work with programs, in a few calls of run_python:
- Look at the form of the texts first: some lines from the beginning, the middle and the end.
- Count, search and compare by code where code can decide it. Where only reading helps, split the texts and \
ask about all parts at once, with one asyncio.gather; let each answer be short and of a form that code can \
join.
- Join the answers by code. Ask again about what is unclear or contradictory.
- Check before you answer: are all parts covered, do the counts add up, is a quotation in the text?

Then answer in plain words, for a reader who sees only your last message: the answer first, then the numbers \
and the places in the texts that it rests on. If the texts do not say it, say so."""

SHOWN_TEXTS = 4
"""This many texts are shown with their beginnings; of others only their names and sizes."""

LISTED_TEXTS = 40
"""The most lines of the table of texts: of more texts, those of a folder are one line."""

MAX_DEPTH = 20
"""So many folders deep the table goes at most."""

TEXTS = "The texts:"
EARLIER_SHOWN = 3
EARLIER_CHARS = 2000


class Earlier(msgspec.Struct, frozen=True):
    """A question that was asked before about the same texts, and its answer."""

    question: str
    answer: str


def question_bundle(
    model: str,
    ask_model: str | None = None,
    price: ModelPrice | None = None,
    ask_price: ModelPrice | None = None,
    server: ModelServer = ModelServer(),  # noqa: B008
    ask_server: AskSection = AskSection(),  # noqa: B008
) -> Bundle:
    """Return the program of the agent, whose model is asked at `server`. `ask_model` answers the questions of
    its code, at the server that `ask_server` names; by default its own model does."""
    own = None if not ask_model or ask_price is None else PriceSection.of(ask_price)
    program = Program(
        name=NAME,
        model=model,
        provider=server.provider,
        base_url=server.base_url,
        api_key_env=server.api_key_env,
        system=SYSTEM,
        tools=TOOLS,
        price=price,
        python_limits=PythonSection(
            ask=msgspec.structs.replace(ask_server, model=ask_model or "", price=own)
        ),
    )
    return priced(Bundle(root=NAME, programs={NAME: program}))


def offer_sql(bundle: Bundle, texts: Iterable[Descriptor]) -> Bundle:
    """Return the program with `sql_fd`, if a table is among the texts and DuckDB is installed here."""
    if not is_installed("duckdb") or not any(map(_is_table, texts)):
        return bundle
    program = bundle.programs[bundle.root]
    program = msgspec.structs.replace(program, tools=(*program.tools, SQL_TOOL))
    return Bundle(root=bundle.root, programs={**bundle.programs, bundle.root: program})


def _is_table(content: Descriptor) -> bool:
    names = (content.fd.lower(), content.source.lower())
    return any(name.endswith(TABLE_ENDS) for name in names) or any(
        kind in content.media_type for kind in TABLE_TYPES
    )


def task_text(
    question: str, texts: Sequence[Descriptor], earlier: Sequence[Earlier] = (), variables: Sequence[str] = ()
) -> str:
    """Return the message to the agent: the question, the texts, and what is there from earlier questions.

    >>> print(task_text("Who pays?", [], [Earlier("Who sells?", "Ann.")], ["parts"]))
    Who pays?
    <BLANKLINE>
    Earlier questions about these texts, with your answers:
    - Who sells?
      Ann.
    Variables from then are there: parts
    """
    lines = [question]
    if texts:
        lines += ["", TEXTS, *_table(texts)]
    if earlier:
        lines += ["", "Earlier questions about these texts, with your answers:"]
        for each in earlier[-EARLIER_SHOWN:]:
            lines += [f"- {_cut(each.question)}", f"  {_cut(each.answer) or 'There was no answer.'}"]
    if variables:
        lines.append(f"Variables from then are there: {', '.join(variables)}")
    return "\n".join(lines)


def _table(texts: Sequence[Descriptor]) -> list[str]:
    """Return lines about all texts, at most `LISTED_TEXTS` and two: each text, or folders of their names with
    what is in them, as deep as there is room."""
    rows = {each.fd: [each] for each in texts}
    if len(rows) > LISTED_TEXTS:
        rows = _by_folder(texts, 1)
        for depth in range(2, MAX_DEPTH):
            finer = _by_folder(texts, depth)
            if len(finer) > LISTED_TEXTS:
                break
            rows = finer
    lines = []
    for name, inside in list(rows.items())[:LISTED_TEXTS]:
        has_others = len(inside) > 1 and any(other != name and other.startswith(name) for other in rows)
        lines.append(f"- {'directly in ' if has_others else ''}{name}: {_described(inside)}")
    if len(rows) < len(texts):
        lines.append('- list_fds(prefix="...") lists the names that begin so')
    if len(rows) > LISTED_TEXTS:
        lines.append(f"- and {len(rows) - LISTED_TEXTS} more; fds() lists them all")
    return lines


def _by_folder(texts: Sequence[Descriptor], depth: int) -> dict[str, list[Descriptor]]:
    """Group texts by the first `depth` folders of their names. One without a folder, or alone in it, is a
    group of its own."""
    groups: dict[str, list[Descriptor]] = {}
    for each in texts:
        folders = each.fd.split("/")[:-1][:depth]
        groups.setdefault("".join(f"{folder}/" for folder in folders) or each.fd, []).append(each)
    return {inside[0].fd if len(inside) == 1 else folder: inside for folder, inside in groups.items()}


def _described(inside: Sequence[Descriptor]) -> str:
    """Describe a text, or what is in a folder."""
    chars, lines = sum(each.chars for each in inside), sum(each.lines for each in inside)
    size = f"{chars} characters in {lines} lines"
    of_bytes = [each for each in inside if each.kind == "bytes"]
    if len(inside) > 1:
        count = (
            f"{len(inside)} contents, {len(of_bytes)} of them bytes" if of_bytes else f"{len(inside)} texts"
        )
        return f"{count}, {size}"
    [text] = inside
    source = show_controls(text.source, keep="")  # a file name may have line breaks
    return f"{source}, no text: {text.media_type}, {text.bytes} bytes" if of_bytes else f"{source}, {size}"


def question_in(task: str) -> str:
    """Return the question in a message of `task_text`."""
    return task.partition(f"\n\n{TEXTS}\n")[0]


def _cut(text: str) -> str:
    return text if len(text) <= EARLIER_CHARS else f"{text[:EARLIER_CHARS]} [...]"


def launch_question(
    store: Store,
    holder: Process,
    bundle: Bundle,
    question: str,
    *,
    earlier: Sequence[Earlier] = (),
    variables: Sequence[str] = (),
) -> Process:
    """Create the agent that answers a question about all contents of `holder`, ready to run; the holder has
    the question as its task, and at the end of the agent what it has made. Raises `Fenced` (the holder has
    ended), `SpawnLimit`."""
    held = holder.list()
    texts = [each for each in held if each.kind == "text"]
    program = bundle.programs[bundle.root]
    stored = processes.StoredProgram(bundle.root, bundle.digest, bundle.json, program.price)
    handle = store.run(processes.create_child(holder.handle, None, program=stored))
    preload = [each.fd for each in texts] if len(texts) <= SHOWN_TEXTS else []
    task = SpawnTask(query=task_text(question, held, earlier, variables), preload=preload, hands_back=True)
    store.run(processes.launch(handle, encode_task(task), first_line(question), for_parent=True))
    return Process(store, handle)

"""The verb ask: a question about files, answered by an agent that writes programs over them."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fdstore.cli import output
from fdstore.cli.control import exit_by, interrupt_option, load_runner, quiet_option, run_until_ended
from fdstore.cli.members import (
    Stored,
    StoringProgress,
    check_members,
    choice_of,
    find,
    member_options,
)
from fdstore.cli.put_file import Errors, PutOptions, count, path_of, remedy_for, store_member
from fdstore.cli.session import CliSession, as_usage_errors, verb
from fdstore.errors import InvalidArgument, NotEncoded
from fdstore.model.providers import DEFAULT_PROVIDER, PROVIDERS
from fdstore.setup.optional_packages import require
from fdstore.text.numbers import COUNT_UNITS, parse_number

if TYPE_CHECKING:
    from fdstore.agents.loop.bundle import Bundle, Program
    from fdstore.agents.loop.questions import Earlier
    from fdstore.client import Process, Store
    from fdstore.files.members import Members

MAX_VARIABLES = 30

SCRIPT = "script"
"""The name of the model of --demo."""

F = TypeVar("F", bound=Callable[..., Any])


class Tokens(click.ParamType[int]):
    """A number of tokens, as 500000 or 500k."""

    name = "tokens"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else parse_number(str(value), COUNT_UNITS)
        if found is None or found < 1:
            self.fail(f"{value!r} is not a number of tokens; write it as 500000 or 500k", param, ctx)
        return found


def server_options(begin: str, of: str) -> Callable[[F], F]:
    """Add the options for a server of models, whose names begin with `begin`; `of` says whose it is."""

    def add(command: F) -> F:
        for name, metavar, said in reversed(
            [
                ("provider", None, f"The provider of the model {of}."),
                ("base-url", "URL", f"The server of the model {of}: it gets none of the SDK's own keys."),
                ("api-key-env", "VARIABLE", f"The variable with the key of the model {of}."),
            ]
        ):
            kind = click.Choice(list(PROVIDERS)) if name == "provider" else None
            command = click.option(f"--{begin}{name}", type=kind, metavar=metavar, help=said)(command)
        return command

    return add


@verb
@click.argument("question", metavar="QUESTION")
@click.argument("paths", metavar="PATH|-...", nargs=-1, type=click.Path(allow_dash=True))
@member_options
@click.option("--encoding", metavar="NAME", help="Encoding of the texts, as utf-16. [default: utf-8]")
@click.option(
    "--errors",
    type=click.Choice(["strict", "backslashreplace"]),
    default="strict",
    show_default=True,
    help="Invalid bytes in a text: refuse it, or store them as \\xNN.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="The model of the agent, which writes the programs. [env: FDSTORE_MODEL; default:"
    " claude-sonnet-5-5]",
)
@click.option(
    "--ask-model",
    metavar="NAME",
    help="The model that its programs ask about parts of the texts; a cheaper one often does. "
    "[env: FDSTORE_ASK_MODEL; default: that of the agent]",
)
@server_options("", "of the agent")
@server_options("ask-", "that its programs ask; default: that of the agent")
@click.option("--budget", metavar="TOKENS", type=Tokens(), help="The most tokens it may use in all, as 500k.")
@click.option("--name", metavar="NAME", help="Name of the process with the texts. [default: ask-xxxxxx]")
@click.option(
    "--continue", "continued", metavar="TREE", help="Ask about the texts of an earlier question, by its name."
)
@click.option("--detach", is_flag=True, help="Let workers answer it, and return immediately.")
@click.option("--demo", is_flag=True, help="Show what would happen: a script plays the model. Needs no key.")
@interrupt_option("cancel")
@quiet_option
def ask(
    session: CliSession,
    question: str,
    paths: tuple[str, ...],
    encoding: str | None,
    errors: Errors,
    model: str | None,
    ask_model: str | None,
    provider: str | None,
    base_url: str | None,
    api_key_env: str | None,
    ask_provider: str | None,
    ask_base_url: str | None,
    ask_api_key_env: str | None,
    budget: int | None,
    name: str | None,
    continued: str | None,
    detach: bool,
    demo: bool,
    quiet: bool,
    on_interrupt: str,
    **taken: Any,
) -> None:
    """Answer a question about files and folders of any size, and print the answer.

    An agent gets what each PATH names (- is standard input) as stored texts: a file, the files in a folder,
    what a packed file holds, a document and its text, as `fdstore put` takes them. It does not read the texts
    page by page: it writes programs that search and count in them, and that ask a model about all their parts
    at once, on workers. The progress goes to standard error. Needs ANTHROPIC_API_KEY, or the key of another
    --provider; a server that is named with --base-url gets that of --api-key-env alone.

    A file that is named must be text, or a document that has some; those in folders and archives that are
    none are there as bytes.

    The texts stay, in a process of their own, for the retention of a tree. With --continue further questions
    are asked about them, and about further PATHs: the agent knows the last questions and answers, and its
    programs have the variables of the earlier ones. --budget is then added to what is used already.
    `fdstore python NAME` looks at the variables, `fdstore log NAME.1` at the programs of the first question.

    \b
    fdstore ask "Which errors began after the deployment at 14:00?" build.log app.log
    fdstore ask "Where is the timeout set?" src --exclude '*.min.js'
    journalctl | fdstore ask "What broke the network?" - --ask-model claude-haiku-4-5
    fdstore ask --continue ask-k3v9qd "And who noticed it?"

    The exit code is 0 if there is an answer, else 1; also if a member of an archive was left out.

    With --demo a script plays the model, on this machine, over your own files: it searches for the words of
    the question and says that it is a script. All else is real, and apart from your texts: the prefix is
    fdstore-demo.
    """
    from fdstore.agents.loop.questions import DEFAULT_MODEL, question_bundle
    from fdstore.cli.run import workers_for
    from fdstore.model.model_servers import ModelServer
    from fdstore.programs.interpreter.pool import EXTRA, PACKAGE
    from fdstore.results.python_config import AskSection
    from fdstore.setup import settings
    from fdstore.text.encodings import make_decoder
    from fdstore.text.surrogates import escape_surrogates

    if not question.strip():
        raise click.UsageError("the question is empty")
    if not paths and os.path.exists(question):
        named = shlex.quote(question)
        raise click.UsageError(f'the question comes first: fdstore ask "What is this about?" {named}')
    if not paths and continued is None:
        raise click.UsageError("name the files that it is about; - is standard input")
    if name is not None and continued is not None:
        raise click.UsageError("--continue names the process; leave --name out")
    if paths.count("-") > 1:
        raise click.UsageError("standard input can be stored only once")
    if encoding is not None:
        with as_usage_errors("--encoding"):
            make_decoder(encoding, "strict")
    choice = choice_of(**taken, needs_texts=True)
    options = PutOptions(
        kind="text",
        is_forced=False,
        encoding=encoding,
        errors=errors,
        page_size=None,
        source=None,
        media_type=None,
        key=None,
        if_absent=False,
    )
    require()
    require((PACKAGE,), EXTRA)
    env = settings.read()
    prices = settings.parse_prices(env.prices)
    with as_usage_errors("--base-url, --api-key-env"):
        server = ModelServer(
            provider=provider or DEFAULT_PROVIDER, base_url=base_url, api_key_env=api_key_env
        ).server
        ask_server = AskSection(provider=ask_provider, base_url=ask_base_url, api_key_env=ask_api_key_env)
    if not (model or env.model) and (server.provider != DEFAULT_PROVIDER or server.base_url):
        raise click.UsageError("name the model, as that server calls it: --model NAME")
    if ask_server != AskSection() and not (ask_model or env.ask_model):
        raise click.UsageError("name the model that is asked, as its server calls it: --ask-model NAME")
    model = escape_surrogates(model or env.model or DEFAULT_MODEL)
    ask_model = escape_surrogates(ask_model or env.ask_model or "") or None
    if demo:  # under a name that has no price, since a script costs nothing
        model, ask_model, prices = SCRIPT, None, {}
    bundle = question_bundle(
        model, ask_model, prices.get(model), prices.get(ask_model or model), server, ask_server
    )
    if demo and detach:
        raise click.UsageError("--demo ends with this command, so nothing can go on; leave --detach out")
    with ExitStack() as held:
        if demo:
            session.prefix = session.prefix or settings.DEMO_PREFIX
            held.enter_context(_scripted_model(question))
        elif not detach and on_interrupt == "cancel":
            _require_key(bundle.programs[bundle.root])
        # look at the files first: a wrong file name must not leave an empty process behind
        found = held.enter_context(find(paths, choice))
        store = held.enter_context(session.store())
        if continued is None:
            holder = _new_holder(store, name, budget)
            try:
                _store_texts(holder, found, options)
            except BaseException:
                store.drop_tree(holder.id, kill=True)
                raise
            earlier, variables = [], []
        else:
            holder = _holder_of(store, continued, budget)
            earlier, variables = _earlier(store, holder), _variables(store, holder)
            _store_texts(holder, found, options)
        if demo:
            held.enter_context(_worker_of_demo(store))
        else:
            workers_for(session, store, bundle, agents=True)
        _answer(
            session,
            store,
            holder,
            bundle,
            question,
            earlier=earlier,
            variables=variables,
            detach=detach,
            quiet=quiet,
            on_interrupt=on_interrupt,
            demo=demo,
        )
        if found.odd:
            click.get_current_context().exit(1)


def _require_key(program: Program) -> None:
    load_runner(*program.servers)
    from fdstore.agents.loop.models.providers import missing

    for server in program.servers:
        if problem := missing(server):
            way = f'{problem}. `fdstore ask --demo "..." FILE` shows what would happen, by a script'
            raise click.ClickException(way)


@contextmanager
def _scripted_model(question: str) -> Iterator[None]:
    """Play the model by a script while the block runs, for this program and what it starts."""
    from fdstore.demo.scripted_question import script_for
    from fdstore.testing import ScriptedModel

    output.say("fdstore: a script plays the model; what it says is no answer")
    with ScriptedModel(script_for(question)) as model:
        before = {name: os.environ.get(name) for name in model.environ}
        os.environ.update(model.environ)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextmanager
def _worker_of_demo(store: Store) -> Iterator[None]:
    """Run a worker for the questions to the script while the block runs."""
    from fdstore.cli.demo import demo_worker

    with (
        tempfile.TemporaryDirectory(prefix="fdstore-ask-") as folder,
        demo_worker(store, {}, Path(folder) / "worker.log"),
    ):
        yield


def _new_holder(store: Store, name: str | None, budget: int | None) -> Process:
    """Create the process that holds the texts. Raises `InvalidArgument` for a name that is taken."""
    from msgspec import UNSET

    from fdstore.agents.loop.questions import NAME
    from fdstore.client import Process
    from fdstore.model.records import TreeLimits
    from fdstore.store.processes.processes import open_root
    from fdstore.store.tree_limits import fresh_name

    limits = TreeLimits(tree_token_budget=UNSET if budget is None else budget)
    named = fresh_name(NAME) if name is None else name
    operation = open_root(store.prefix, named, limits, fresh=True, exact=name is not None)
    try:
        return Process(store, store.run(operation))
    except InvalidArgument as error:
        if name is None or error.argument != "name":
            raise
        problem = f"{error.problem}, or ask more about its texts: fdstore ask --continue {name} QUESTION"
        raise InvalidArgument("--name", problem) from error


def _holder_of(store: Store, name: str, budget: int | None) -> Process:
    """Return the process with the texts of an earlier question; `budget` more tokens may be used from now on.
    Raises `NotFound`, `InvalidArgument`."""
    from fdstore.client import Process
    from fdstore.store.processes import process_records
    from fdstore.store.processes.processes import open_child
    from fdstore.store.trees import ceilings

    root = name.partition(".")[0]  # that of an agent of a question will do
    holder = Process(store, store.run(open_child(store.prefix, root)))
    state = store.run(process_records.record(store.prefix, root)).state
    if state != "open":
        problem = f"{root} is {state}; only a process of `fdstore ask` or `fdstore put` takes questions"
        raise InvalidArgument("--continue", problem)
    if budget is not None:
        used = store.tree(root).all_tokens
        store.run(ceilings.request(holder.handle.keys.tree, tree_token_budget=used + budget))
    return holder


def _store_texts(holder: Process, found: Members, options: PutOptions) -> None:
    """Store what was found. Raises `InvalidArgument` if a named file is not text, or if nothing found is
    text."""
    from fdstore.text.encodings import wide_encoding_of

    check_members(holder, found, options)
    stored, progress = Stored(), StoringProgress("ask", found.members)
    texts = 0
    for member in found.members:
        with progress.of(member) as tell:
            made, head = store_member(holder, member, options, tell, _explain)
        is_text = made.kind == "text"
        texts += is_text and made.chars > 0
        if not (member.is_named or len(found.members) == 1):
            count(stored, member, made, head)
            continue
        if not is_text:
            raise InvalidArgument(member.shown, _no_text(member.shown, head, "this is not text in UTF-8"))
        if options.encoding is None and (wide := wide_encoding_of(head)):
            raise InvalidArgument(member.shown, _no_text(member.shown, head, f"this is {wide.upper()}"))
        if not made.chars:
            raise InvalidArgument(member.shown, "it is empty; there is nothing to ask about")
    stored.report(found)
    if found.members and not texts:
        raise InvalidArgument("PATH", "there is no text in what was named; there is nothing to ask about")


def _explain(
    error: NotEncoded, process: str, file: str, head: bytes, key: str | None = None
) -> InvalidArgument:
    """Return the error for a file that is not text, with the way to get its text if it has one."""
    return InvalidArgument(file, _no_text(file, head, f"this is not text in UTF-8: {error.problem}"))


def _no_text(file: str, head: bytes, problem: str) -> str:
    """Return the problem with a file that is not text, and what to do about it."""
    from fdstore.text.encodings import wide_encoding_of

    wide, remedy = wide_encoding_of(head), remedy_for(file, head)
    if remedy is None:
        ways = "name its encoding, as --encoding latin-1, or keep such bytes as \\xNN with --errors"
        return f"{problem}; {ways} backslashreplace"
    if not remedy.command:
        return f"this is {remedy.what}"
    way = f"{remedy.on(path_of(file))} | fdstore ask QUESTION -"
    if wide:
        return f"this is {wide.upper()}, not UTF-8; name it with --encoding {wide}, or convert it: {way}"
    return f"this is {remedy.what}; ask about the text in it: {way}"


def _earlier(store: Store, holder: Process) -> list[Earlier]:
    """Return the questions that were asked about these texts before, in order, with their answers."""
    from fdstore.agents.loop.questions import EARLIER_SHOWN, NAME, Earlier, question_in
    from fdstore.store.processes import journal, process_records
    from fdstore.store.record_format import decode_record
    from fdstore.tools.process_task import SpawnTask

    agents = [
        each.id
        for each in store.tree(holder.id).members
        if each.parent == holder.id and each.program == NAME and each.ended_at is not None
    ][-EARLIER_SHOWN:]
    found = []
    for agent in agents:
        first = store.run(journal.read(store.prefix, agent, 1))
        task = decode_record(first[0] if first else None, SpawnTask, f"the journal of process {agent}")
        asked = question_in(str(task.query))
        found.append(Earlier(asked, store.run(process_records.answer_of(store.prefix, agent)).text))
    return found


def _variables(store: Store, holder: Process) -> list[str]:
    """Return the names of the variables that earlier questions have left, those that can be read here."""
    from fdstore.model.call_limits import CallLimits
    from fdstore.programs.interpreter.events import UnreadableState
    from fdstore.programs.interpreter.prelude import NAMES as BUILT_IN
    from fdstore.programs.interpreter.session import Session
    from fdstore.programs.python_call import damage_reported
    from fdstore.store.processes import python_state

    state = store.run(python_state.read(holder.handle, "")).session
    if state is None:
        return []
    try:
        with damage_reported(holder.id):
            session = Session(CallLimits(), state=state)
    except UnreadableState:
        return []
    try:
        found = session.largest_variables(MAX_VARIABLES + len(BUILT_IN))
        return sorted(name for name, _ in found if name not in BUILT_IN)[:MAX_VARIABLES]
    finally:
        session.close()


def _answer(
    session: CliSession,
    store: Store,
    holder: Process,
    bundle: Bundle,
    question: str,
    *,
    earlier: Sequence[Earlier],
    variables: Sequence[str],
    detach: bool,
    quiet: bool,
    on_interrupt: str,
    demo: bool,
) -> None:
    from fdstore.agents.loop.questions import launch_question, offer_sql
    from fdstore.agents.runtime.waker import waker
    from fdstore.cli.question_progress import QuestionProgress, report_answer
    from fdstore.files.permissions import Permissions
    from fdstore.store.processes import process_records

    if not detach:
        load_runner(*bundle.programs[bundle.root].servers)
    bundle = offer_sql(bundle, holder.list())
    agent = launch_question(store, holder, bundle, question, earlier=earlier, variables=variables)
    if detach:
        waker(store.url, store.prefix)(agent.id)
        session.show({"process": agent.id, "texts": holder.id}, agent.id)
        return
    progress = QuestionProgress(store, agent.id, quiet=quiet)
    with progress.shown():
        run_until_ended(store, agent.id, permissions=Permissions(), own=bundle, on_interrupt=on_interrupt)
    ended = store.run(process_records.answer_of(store.prefix, agent.id))
    report_answer(session, store, holder.id, ended, progress.now, quiet=quiet, demo=demo)
    exit_by(ended)

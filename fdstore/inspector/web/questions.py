"""Questions to a person: all that are open, and one with the form that answers it, if `--allow answer`
permits.

A form shows its mistakes in place and keeps what was typed. The first answer stays: a second one is shown who
was first.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote

import msgspec
from starlette.responses import RedirectResponse, Response

from fdstore.errors import FDStoreError, InvalidArgument, QuestionClosed
from fdstore.inspector.reading.conversation import MAX_RECORDS, conversation
from fdstore.inspector.web.inspector import Inspector
from fdstore.inspector.web.live import seen
from fdstore.inspector.web.page import PageRequest, SeeOther, WebPage, route
from fdstore.inspector.web.question_card import (
    EDITED_ALONE_CHARS,
    QuestionCard,
    cards_of,
    parse_arguments,
    written,
)
from fdstore.inspector.web.rendering import render
from fdstore.inspector.web.responses import NAME_COOKIE, as_json, context, html, problem_of, problem_page
from fdstore.inspector.web.waking import wake_workers
from fdstore.model.people import MAX_NAME_CHARS, GivenAnswer, PersonAnswer, Question
from fdstore.model.records import Record, Unreadable
from fdstore.store.clock import redis_now
from fdstore.store.processes import people
from fdstore.store.processes.people import AskedQuestion
from fdstore.text.numbers import MAX_INTEGER

ROWS = 20
"""Questions on one page."""

DOOR = "inspector"

MAX_FIELDS = 20

NAME_KEPT_S = 365 * 86_400


class AnswerRefused(FDStoreError):
    """The inspector was started without the permission to answer questions."""

    type = "permission_error"
    says = "this inspector answers no questions; start it with --allow answer, or use `fdstore answer`"
    http = 403


class QuestionsPage(Record, frozen=True, kw_only=True):
    """The open questions of `tree`, or of all (""), from the `start`-th on, of `total`; `next` begins the
    next page."""

    tree: str
    cards: tuple[QuestionCard, ...]
    start: int
    next: int | None
    total: int
    unreadable: list[Unreadable]
    now_s: float


class QuestionPage(Record, frozen=True, kw_only=True):
    """One question, and what became of it: its answer, or the state in which its process ended. `is_open`:
    it takes an answer. `others` are more open questions of its tree."""

    card: QuestionCard
    answer: PersonAnswer | None
    ended: str
    is_open: bool
    others: int
    now_s: float


class AnswerForm(Record, frozen=True, kw_only=True):
    """What a person typed that was not taken: `error` says why, and `field` which part of it is meant."""

    text: str = ""
    reason: str = ""
    arguments: str | None = None
    name: str = ""
    error: str = ""
    field: str = ""


async def load(request: PageRequest) -> QuestionsPage:
    """Load the open questions. Raises `NotFound` for a tree that does not exist, `InvalidArgument`."""
    store, tree = request.store, request.query("tree")
    start = request.number("from", 0)
    found = await store.run(people.open_questions(store.prefix, tree or None))
    shown = found.questions[start : start + ROWS]
    return QuestionsPage(
        tree=tree,
        cards=await cards_of(request, shown),
        start=start,
        next=start + ROWS if start + ROWS < len(found.questions) else None,
        total=len(found.questions),
        unreadable=found.unreadable,
        now_s=await store.run(redis_now()),
    )


async def load_one(request: PageRequest) -> QuestionPage:
    """Load one question. Raises `NotFound`, `DamagedRecord`."""
    return await _page_of(request, await _asked(request))


async def _asked(request: PageRequest) -> AskedQuestion:
    process, number = request.argument("id"), int(request.argument("number"))
    if not 1 <= number <= MAX_INTEGER:
        raise InvalidArgument("question", "questions count from 1")
    return await request.store.run(people.asked_question(request.prefix, process, number))


async def _page_of(request: PageRequest, asked: AskedQuestion) -> QuestionPage:
    store, question = request.store, asked.question
    [card] = await cards_of(request, [question], EDITED_ALONE_CHARS)
    others = await store.run(people.open_questions(store.prefix, question.tree))
    now_s = await store.run(redis_now())
    return QuestionPage(
        card=card,
        answer=asked.answer,
        ended=asked.ended,
        is_open=asked.answer is None and not asked.ended and question.until > now_s,
        others=sum((each.process, each.number) != _id(question) for each in others.questions),
        now_s=now_s,
    )


def _id(question: Question) -> tuple[str, int]:
    return question.process, question.number


async def answer(request: PageRequest) -> Response:
    """Answer a question, and show what became of it; or the form again, with what is wrong and what was
    typed."""
    http, inspector = request.http, request.inspector
    wants_json = "application/json" in http.headers.get("accept", "")
    form = AnswerForm()
    try:
        if not inspector.options.may_answer or inspector.connect_to_write is None:
            raise AnswerRefused()
        body = (await http.body()).decode("utf-8", "replace")
        fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS))
        fields = {name: value.replace("\r\n", "\n") for name, value in fields.items()}
        form = AnswerForm(
            text=fields.get("text", ""),
            reason=fields.get("reason", ""),
            arguments=fields.get("arguments"),
            name=fields.get("as", "").strip(),
        )
        asked = await inspector.within(5.0, lambda: _asked(request))
        try:
            given = await inspector.within(
                10.0, lambda: _answer(inspector, asked, form, fields.get("do", ""))
            )
        except (InvalidArgument, QuestionClosed) as error:
            if wants_json:
                raise
            return await _form_again(request, form, error)
    except FDStoreError as error:
        return problem_page(request, problem_of(error), as_data=wants_json)
    except ValueError:
        problem = InvalidArgument("form", f"it has more than {MAX_FIELDS} fields")
        return problem_page(request, problem_of(problem), as_data=wants_json)
    if wants_json:
        return as_json(given)
    response = RedirectResponse(http.url.path, 303)
    response.set_cookie(
        *(NAME_COOKIE, quote(form.name)),
        max_age=NAME_KEPT_S,
        httponly=True,
        samesite="strict",
        secure=http.url.scheme == "https",
    )
    return response


async def _form_again(request: PageRequest, form: AnswerForm, error: FDStoreError) -> Response:
    """Return the page of a question with what was typed, and what is wrong with it."""
    field, problem = "", str(error)
    if isinstance(error, InvalidArgument):
        field, problem = error.argument, error.problem
    form = msgspec.structs.replace(form, error=problem, field=field)
    page = await request.inspector.within(5.0, lambda: load_one(request))
    values = {**context(request, ONE, page), "form": form}
    return html(render(request.inspector.templates, ONE.template, seen=seen(page), **values), error.http)


async def _answer(inspector: Inspector, asked: AskedQuestion, form: AnswerForm, do: str) -> PersonAnswer:
    """Give the answer of a form, of which the button `do` was used. Raises `InvalidArgument`,
    `QuestionClosed` and what the store does."""
    assert inspector.connect_to_write is not None
    question = asked.question
    if not form.name or len(form.name) > MAX_NAME_CHARS or not form.name.isprintable():
        raise InvalidArgument(
            "as", f"your name is needed for the record, of at most {MAX_NAME_CHARS} characters"
        )
    choice, given, approved = None, None, None
    text: str | None = None
    match do.partition("-"):
        case ("choice", _, number) if number.isascii() and number.isdecimal() and len(number) < 4:
            choice = int(number)
        case ("yes", "", ""):
            approved = True
            # what was shown and not changed is what was asked, to the digit
            if form.arguments is not None and form.arguments != written(question.arguments):
                given = parse_arguments(form.arguments, question.tool)
        case ("no", "", ""):
            approved = False
        case ("answer", "", ""):
            text = form.text
        case _:
            raise InvalidArgument("do", "use one of the buttons")
    said = GivenAnswer(
        text=text,
        question=question.number,
        choice=choice,
        approve=approved,
        reason=form.reason.strip() if approved is False else "",
        arguments=given,
        by=form.name,
        door=DOOR,
    )
    async with await inspector.connect_to_write() as store:
        taken = await store.run(people.answer(store.prefix, question.process, said))
    await wake_workers(inspector, [question.process] if taken.wakes else [])
    return taken.answer


async def find_call(request: PageRequest) -> None:
    """Go to the place in a conversation where a call (`key`) was made; to the end of the conversation if it
    is not among its last records. Raises `SeeOther`, `NotFound`."""
    process, key = request.argument("id"), request.query("key")
    path = f"/process/{quote(process, safe='')}"
    page = await request.store.run(
        conversation(request.prefix, process, -MAX_RECORDS, MAX_RECORDS, max_chars=0)
    )
    for entry in reversed(page.entries):
        if entry.kind == "call" and entry.call and (key == entry.call or key.startswith(f"{entry.call}/")):
            raise SeeOther(f"{path}?at={entry.position}-{entry.part}#pane")
    raise SeeOther(f"{path}#last")


ONE = WebPage("/process/{id}/questions/{number:int}", "one_question.html", load_one, live_s=1.0)
PAGES = [
    WebPage("/questions", "questions.html", load, live_s=1.0),
    ONE,
    WebPage("/process/{id}/call", "problem.html", find_call),
]
ROUTES = [route(ONE.path, answer, ["POST"])]

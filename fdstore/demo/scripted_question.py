"""The script of `fdstore ask --demo`: what an agent would do with a question, by a model that cannot read.

It searches the texts for the words of the question and asks about some of their parts, as a model begins. Its
answers say that they are a script's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fdstore.testing import Request, Turn, call, element, say

PARTS = 8
"""At most this many parts are asked about."""

PART_CHARS = 100_000

SHOWN_TEXTS = 10
"""Of so many texts it says something."""

PROGRAM = """\
import asyncio

parts = []
texts = [text for text in fds() if text.kind == "text"]
for text in texts[:{shown}]:
    print(f"{{text.source}}: {{text.total_lines}} lines, {{text.total_chars}} characters")
    for word in {words!r}:
        hits = text.search(word, ignore_case=True, max_matches=10_000)
        if hits:
            many = "10000 lines or more" if len(hits) == 10_000 else f"{{len(hits)}} lines"
            print(f"  {{word}}: {{many}}, the first is {{hits[0].line}}: {{hits[0].text[:100]}}")
    parts += text.split(chars={chars})
if len(texts) > {shown}:
    print(f"and {{len(texts) - {shown}}} more texts")
answers = await asyncio.gather(*[ask({question!r}, part) for part in parts[:{count}]])
print(f"{{len(parts)}} parts; {{len(answers)}} of them were given to the model that is asked.")
"""

_WORD = re.compile(r"\w{4,}")
_COMMON = re.compile(
    "about|after|again|also|been|before|could|does|from|give|happened|have|into|list|many|most|name|other|over|"
    "please|show|some|such|tell|than|that|their|them|then|there|these|they|this|those|were|what|when|where|"
    "which|while|will|with|would|your"
)


def script_for(question: str) -> Callable[[Request], Turn]:
    """Return the script of both models: the agent's, and the one that its program asks."""

    def answers(request: Request) -> Turn:
        if not request.tools:
            return say("A script cannot read this part.")
        if request.turn_number == 0:
            words = words_of(question)
            code = PROGRAM.format(
                words=words, question=question, chars=PART_CHARS, count=PARTS, shown=SHOWN_TEXTS
            )
            return call("run_python", code=code)
        return say(
            "This is a script, not a model: it looked for the words of your question.\n\n"
            f"{element(request.last_text(), 'python_result').body}\n\n"
            "A model writes programs for your question, asks about the parts that matter, and answers it. "
            "Set ANTHROPIC_API_KEY and leave --demo out."
        )

    return answers


def words_of(question: str) -> list[str]:
    """Return the words of a question to search for, at most ten.

    >>> words_of("Which errors began after the deployment?")
    ['errors', 'began', 'deployment']
    """
    found = dict.fromkeys(word.lower() for word in _WORD.findall(question))
    return [word for word in found if not _COMMON.fullmatch(word)][:10]

"""The plan of `fdstore bench programs` with rlms. It is run by a Python that has it, and may lack fdstore.

PYTHON rlms_plan.py PARTS PAGES < TEXT

Its model is that of the environment. A batch of 16 questions at a time is its own limit.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from importlib import import_module
from typing import Any

CODE = """
texts, start = [], 0
while len(texts) < {parts}:
    end = start
    for _ in range({pages}):
        end = context.rfind("\\n", end, end + 4000) + 1
    texts.append(context[start:end])
    start = end
questions = [f"{{text}}\\nWhich dates occur? (part {{n}})" for n, text in enumerate(texts)]
answers = llm_query_batched(questions)
answer["content"] = str(len([each for each in answers if each.startswith("There is")]))
answer["ready"] = True
"""


def main(parts: int, pages: int) -> None:
    text = sys.stdin.read()
    rlm: Any = import_module("rlm").RLM(
        backend="anthropic",
        backend_kwargs={"model_name": "any", "api_key": os.environ["ANTHROPIC_API_KEY"], "max_tokens": 4096},
    )
    start = time.monotonic()
    completion = rlm.completion(text, f"<code>{CODE.format(parts=parts, pages=pages)}</code>")
    seconds = time.monotonic() - start
    assert completion.response == str(parts), completion.response
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "memory_bytes": memory}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

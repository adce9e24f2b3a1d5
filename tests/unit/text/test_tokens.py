"""The estimate of tokens is near what a real tokenizer counts. The counts are those of OpenAI's o200k."""

from __future__ import annotations

import pytest

from fdstore.text.tokens import SAMPLE_CHARS, estimate_tokens

LOG = "2026-11-22T13:07:{0:02d}.042Z INFO worker[{0}] id={0:x} path=/api/v1/items/{0} status=200 took={0}ms\n"
CHINESE = "文件描述符是操作系统中用来访问文件或其他输入输出资源的抽象句柄。大型语言模型的上下文窗口有限。"
RUSSIAN = "Когда агент получает длинный текст, он сохраняется один раз, а модель видит только его начало.\n"
ENGLISH = (
    "A large text is stored once, under the process that created it, and the model sees its first page.\n"
)
CODE = "    for number in range(10):\n        print(number * 2, file=sys.stderr)\n    return {'a': None}\n"
JSON = '{"id": 17, "name": "item 17", "tags": ["a", "beta"], "price": 19.89, "ok": true},\n'


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        (ENGLISH, 22),
        (CODE, 26),
        (LOG.format(42), 40),
        (JSON, 36),
        (CHINESE, 31),
        (RUSSIAN, 21),
    ],
    ids=["English", "code", "log", "JSON", "Chinese", "Russian"],
)
def test_an_estimate_is_within_thirty_to_forty_per_cent_of_a_tokenizer(text: str, counted: int) -> None:
    assert 0.7 <= estimate_tokens(text) / counted <= 1.4


def test_a_long_text_is_judged_by_parts_of_it_all() -> None:
    text = ENGLISH * 2000 + "".join(map(LOG.format, range(2000)))

    halves = estimate_tokens(ENGLISH * 2000) + estimate_tokens("".join(map(LOG.format, range(2000))))

    assert len(text) > 4 * SAMPLE_CHARS
    assert estimate_tokens(text) == pytest.approx(halves, rel=0.15)

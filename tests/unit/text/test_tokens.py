"""The estimate of tokens is near what a real tokenizer counts. The counts are those of OpenAI's o200k."""

from __future__ import annotations

import base64
import random

import pytest

from fdstore.text.tokens import SAMPLE_CHARS, estimate_tokens

LOG = "2026-11-22T13:07:{0:02d}.042Z INFO worker[{0}] id={0:x} path=/api/v1/items/{0} status=200 took={0}ms\n"
CHINESE = "文件描述符是操作系统中用来访问文件或其他输入输出资源的抽象句柄。大型语言模型的上下文窗口有限。"
RUSSIAN = "Когда агент получает длинный текст, он сохраняется один раз, а модель видит только его начало.\n"
ENGLISH = (
    "A large text is stored once, under the process that created it, and the model sees its first page.\n"
)
CODE = "    for number in range(10):\n        print(number * 2, file=sys.stderr)\n    return {'a': None}\n"
RANDOM = random.Random(7)
BASE64 = base64.b64encode(RANDOM.randbytes(600)).decode()
BASE64_LINES = base64.encodebytes(RANDOM.randbytes(600)).decode()
BASE64_TEXT = base64.b64encode((ENGLISH * 6).encode()).decode()
HEX = "\n".join(RANDOM.randbytes(32).hex() for _ in range(8))
MINIFIED = (
    'function n(e,t){return e&&t?Object.assign({},e,t):e||t}var r=function(){"use strict";function e'
    "(e){for(var t=[],n=1;n<arguments.length;n++)t[n-1]=arguments[n];this.a=e,this.b=t}return e.prot"
    "otype.run=function(e){return this.b.reduce((function(t,n){return n(t,e)}),this.a)},e}();!functi"
    'on(e){e.version="1.2.3"}(window);'
)
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
        (BASE64, 537),
        (BASE64_LINES, 555),
        (BASE64_TEXT, 528),
        (HEX, 293),
        (MINIFIED, 104),
    ],
    ids=[
        *("English", "code", "log", "JSON", "Chinese", "Russian"),
        *("base64", "base64 in lines", "base64 of a text", "hexadecimal", "minified JavaScript"),
    ],
)
def test_an_estimate_is_within_thirty_to_forty_per_cent_of_a_tokenizer(text: str, counted: int) -> None:
    assert 0.7 <= estimate_tokens(text) / counted <= 1.4


def test_a_long_text_is_judged_by_parts_of_it_all() -> None:
    text = ENGLISH * 2000 + "".join(map(LOG.format, range(2000)))

    halves = estimate_tokens(ENGLISH * 2000) + estimate_tokens("".join(map(LOG.format, range(2000))))

    assert len(text) > 4 * SAMPLE_CHARS
    assert estimate_tokens(text) == pytest.approx(halves, rel=0.15)

"""Write documents/: the reference of 40 modules of Python's standard library, as pydoc prints it."""

import pydoc
from pathlib import Path

MODULES = """
    argparse array ast base64 bisect calendar cmd codecs collections configparser contextlib copy csv
    dataclasses datetime decimal difflib email enum fractions functools glob gzip heapq hmac html http
    inspect io itertools json logging pathlib pickle queue random shutil statistics textwrap zipfile
"""


def main() -> None:
    folder = Path("documents")
    folder.mkdir(exist_ok=True)
    for name in MODULES.split():
        text = pydoc.plain(pydoc.render_doc(name, "%s"))
        (folder / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()

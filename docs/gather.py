"""Gathers what the site is made of: `make site`.

The pages link to each other and to files by their places in the repository, so MkDocs gets a copy
of those places: every page, and every file that a page links to.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("*.md", "docs/**/*.md", "bench/**/*.md")
STYLE: Final = ROOT / "docs" / "site.css"


def gather(site: Path) -> None:
    """Copy pages and linked files to ``site``."""
    shutil.rmtree(site, ignore_errors=True)
    pages = [page for pattern in PAGES for page in ROOT.glob(pattern)]
    for file in {STYLE, *pages, *(linked for page in pages for linked in links(page))}:
        copy = site / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def links(page: Path) -> list[Path]:
    """The files of the repository that a page links to, or shows."""
    targets = re.findall(r"(?:\]\(|src(?:set)?=\")([^)#\"]+)(?:#[^)]*)?[)\"]", page.read_text())
    files = [(page.parent / target).resolve() for target in targets if "://" not in target]
    return [file for file in files if file.is_file()]


def on_page_content(html: str, **_: object) -> str:
    """MkDocs' hook: a long name breaks behind ``_``, ``/``, ``.`` and the like, if it has to."""

    def breakable(name: re.Match[str]) -> str:
        return re.sub(r"(?<=[_/.:=-])(?=\w)", "<wbr>", name[0])

    return re.sub(r"(?<=<code>)[^<]{25,}(?=</code>)", breakable, html)


if __name__ == "__main__":
    gather(Path(sys.argv[1]))

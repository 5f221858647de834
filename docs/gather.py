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
REFERENCE: Final = "docs/reference.md"
# The public names, whose docstrings the site has below the keywords.
NAMES: Final = {
    "From Spark": ("spark.write", "spark.batch_writer", "spark.read"),
    "From any program": ("write_table", "open_job", "undo", "undo_back_to"),
    "Jobs, tasks and files": ("Job", "Task", "PendingUpload", "JobDirectory"),
    "Settings": (
        *("Mode", "OverwriteMode", "Compression"),
        *("UploadSettings", "PartSizes", "Encryption", "ArrowStream"),
    ),
    "Values": ("CommitResult", "AbortAnswer", "CountedAttempt", "PendingFile"),
    "Errors": (
        *("S3CommitError", "InvalidInputError", "NotFoundError", "AccessError"),
        *("PreconditionError", "TransientError", "JobFailedError", "JobRefusedError"),
        *("OutcomeUnknownError", "StreamClosedError", "WrongPythonError"),
    ),
}
OPTIONS: Final = {"JobDirectory": "members: [uri, typed]"} | dict.fromkeys(
    NAMES["Values"], "show_if_no_docstring: true"
)


def gather(site: Path) -> None:
    """Copy pages and linked files to ``site``."""
    shutil.rmtree(site, ignore_errors=True)
    pages = [page for pattern in PAGES for page in ROOT.glob(pattern)]
    for file in {STYLE, *pages, *(linked for page in pages for linked in links(page))}:
        copy = site / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    with (site / REFERENCE).open("a") as page:
        page.write(docstrings())


def docstrings() -> str:
    """What has mkdocstrings put each public name's docstring."""
    parts = []
    for head, names in NAMES.items():
        parts.append(f"\n## {head}\n")
        for name in names:
            options = f"    options: {{{OPTIONS[name]}}}\n" if name in OPTIONS else ""
            parts.append(f"\n::: s3commit.{name}\n{options}")
    return "".join(parts)


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

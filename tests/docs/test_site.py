"""The site and the index have every page."""

from __future__ import annotations

import re
from pathlib import Path

from docs import gather

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT))
    for pattern in gather.PAGES
    for page in ROOT.glob(pattern)
    if "adr" not in page.parts
}


def test_the_sites_navigation_has_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    named = re.findall(r"([\w/]+\.md)$", nav, re.MULTILINE)
    assert sorted(named) == sorted([*PAGES, "docs/adr/index.md"])


def test_the_index_has_every_page_of_the_documentation() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {str(page.relative_to(ROOT)) for page in gather.links(index)}
    ours = {page for page in PAGES if page.startswith("docs/")} - {"docs/README.md"}
    assert ours - linked == set()


def test_what_is_gathered_keeps_its_place_and_brings_what_it_shows(tmp_path: Path) -> None:
    site = tmp_path / "site"
    gather.gather(site)
    assert {page for page in PAGES if not (site / page).exists()} == set()
    assert (site / "docs" / "pictures" / "speed.svg").exists()
    decisions = (site / "docs" / "adr" / "index.md").read_text()
    assert decisions.count("](") == len(list((ROOT / "docs" / "adr").glob("*.md")))

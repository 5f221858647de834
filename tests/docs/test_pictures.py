"""The pictures show what the code, the figures and the README say."""

import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.workloads import NAMES
from docs import page_screens, pictures, recording, workflow
from s3commit.cli.page.job_view import DRAWING

README = (Path(__file__).parents[2] / "README.md").read_text()
PAGE = pictures.FIGURES.read_text()
SECONDS = [pictures.seconds(PAGE, job) for job in pictures.JOBS]


def drawn(name: str) -> str:
    return (pictures.FOLDER / f"{name}.svg").read_text()


def test_the_pictures_are_what_the_script_draws() -> None:
    assert drawn("pipeline") == pictures.pipeline()
    told = re.findall(r"\((\d)\)", README.partition("pipeline.svg)")[2].partition("##")[0])
    assert told == re.findall(r">(\d)</text>", drawn("pipeline"))
    assert drawn("speed") == pictures.speed(PAGE)


def test_the_state_machine_is_drawn_as_it_is_deployed() -> None:
    """By the titles that Graphviz gives boxes and lines; the layout is its own."""
    found = re.findall(r'class="(node|edge)">\n<title>(.+?)</title>', drawn("workflow"))
    assert DRAWING.read_text() == drawn("workflow")  # the page marks its boxes
    titles = sorted((kind, html.unescape(title)) for kind, title in found)
    nodes = [("node", name) for name in workflow.states()]
    edges = [("edge", f"{here}->{there}") for here, there, _ in workflow.edges()]
    assert titles == sorted([*nodes, *edges])
    named = {name for here, there, _ in workflow.edges() for name in (here, there)}
    assert {name for _, name in nodes} - named == set()  # no box floats
    assert 'fill="white"' not in drawn("workflow")  # no card: it lies on any page


def test_the_recording_shows_the_demo_to_its_end_and_brings_all_that_it_needs() -> None:
    """It differs from run to run, so it is not compared with a new one."""
    picture = drawn("demo")
    texts = ["".join(one.itertext()) for one in ET.fromstring(picture).iter() if "text" in one.tag]
    [last] = re.findall(r'say\("\\n(Next: .+)"\)', recording.DEMO.read_text())
    assert texts[-2] == last
    assert "BROKEN" not in picture
    assert sum(one.startswith("   ok: ") for one in texts) == 5
    assert "are shortened to 2 s" in texts[-1]
    [period, delay] = map(float, re.findall(r"animation-(?:duration|delay):([-.\d]+)s", picture))
    assert delay == pytest.approx(recording.FIRST_SECONDS - period)  # the first frame has the end
    assert not re.search(r"<script|<image|<foreignObject|href|url\(|@import|\son\w+=", picture)
    assert picture.count("http") == picture.count('xmlns="http://www.w3.org/2000/svg"') == 1
    assert len(picture) < 150_000


def test_the_pictures_of_the_page_are_small_and_there_in_both_colours() -> None:
    shown = {path.name: path.stat().st_size for path in pictures.FOLDER.glob("page-*")}
    views = [f"page-{view}-{of}.webp" for view in page_screens.HEIGHTS for of in ("dark", "light")]
    assert sorted(shown) == sorted(views)
    assert max(shown.values()) < 80_000


def test_every_workload_of_the_benchmark_is_drawn() -> None:
    assert len(pictures.JOBS) == len(NAMES)
    assert all(len(one) > 1 for one in SECONDS)


def test_the_readme_says_where_the_directory_committer_is_faster() -> None:
    behind = {}
    for ours in ("the jar", "write"):
        by = [
            one[f"s3commit, {ours}"] - min(one["S3A directory"], one["S3A directory, tuned"])
            for one in SECONDS
            if "S3A directory" in one
        ]
        behind[ours] = [seconds for seconds in by if seconds > 0]
    counts = {ours: {1: "one", 2: "two", 3: "three"}[len(by)] for ours, by in behind.items()}
    most = f"by {max(behind['the jar']):.1f} s at most"
    told = f"is faster than the jar in {counts['the jar']} of the five**, {most}"
    assert f"**S3A's directory committer {told}" in README
    assert f"It is faster than `write` in {counts['write']}." in README
    assert len(SECONDS) == 5


def test_the_readme_says_how_much_longer_write_takes_than_the_jar() -> None:
    ratios = [one["s3commit, write"] / one["s3commit, the jar"] for one in SECONDS]
    count = {3: "three", 4: "four"}[sum(ratio > 1 for ratio in ratios)]
    assert f"faster than `write` in {count} of [five jobs]" in README
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times the jar's time" in README


def test_the_readmes_figures_of_the_commit_alone_are_the_pages() -> None:
    page = (pictures.FIGURES.parent / "commit" / "committers.md").read_text()
    rows = re.findall(r"^\| ([^|]+?) \| [\d.]+ \([^|]+\| [\d.]+ \| ([\d.]+) \|", page, re.M)
    jar, tuned = (f"{took} s" for _, took in rows)
    words = " ".join(README.split())
    assert f"took {jar} with the jar, and {tuned} with S3A's magic committer, tuned" in words


def test_the_readme_is_two_screens() -> None:
    assert len(README.encode()) <= 9 * 1024


@pytest.mark.parametrize(
    "words",
    [
        *("S3 committer for Spark", "exactly once", "dynamic partition overwrite"),
        "commit state unknown",  # Iceberg's name
    ],
)
def test_the_first_lines_have_what_people_search_for(words: str) -> None:
    start = README.partition("## ")[0]
    assert words.lower() in " ".join(start.split()).lower()

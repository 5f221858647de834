"""Many keys are listed in ranges side by side: each key once, and none that is not there."""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3commit.core.commit.verify_manifests import cuts_between
from s3commit.core.jobs import listings
from s3commit.core.jobs.listings import list_objects, list_uploads
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, OpenUpload
from tests.core.world import BUCKET, JOB, World, job_directory

KEYS = st.text(st.sampled_from("\x01 /=0159az~\x7f\u00e9\U0001f600"), min_size=1, max_size=6)


class Keys:
    """Listings of given keys; counts the requests, and those that had to wait for one another."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = sorted(keys, key=str.encode)
        self.requests = self.rounds = 0

    @property
    def ports(self) -> Ports:
        store: Any = self
        return replace(World().ports, store=store, parallel=self._round)

    def list(self, _bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        return self._listing(prefix, after, lambda key: ListedObject(key, '"e"', 1))

    def list_uploads(self, _bucket: str, prefix: str, *, after: str = "") -> Iterator[OpenUpload]:
        return self._listing(prefix, after, lambda key: OpenUpload(key, "u", "2026"))

    def _listing(self, prefix: str, after: str, made: Callable[[str], Any]) -> Iterator[Any]:
        at = bisect_right(self.keys, max(after.encode(), prefix[:-1].encode()), key=str.encode)
        while True:
            self.requests += 1
            page = self.keys[at : at + listings.PAGE]
            for key in page:
                if key.startswith(prefix):
                    yield made(key)
                elif key.encode() > prefix.encode():
                    return
            if len(page) < listings.PAGE:
                return
            at += listings.PAGE

    def _round(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        self.rounds += 1
        done = [function(item) for item in items]
        random.Random(len(done)).shuffle(done)  # results come in any order
        return iter(done)


def test_i4_all_uploads_of_one_key_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "PAGE", 2)
    world = World()
    for key in ("t/a", *["t/b"] * 7, "t/c", "t/d"):
        world.store.create_upload(BUCKET, key, metadata={}, content_type="text/csv")
    found = list(list_uploads(world.ports, BUCKET, "t/"))
    assert len({one.upload_id for one in found}) == len(found) == 10


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("part-{0:06}-7f-c000.parquet".format, id="one directory"),
        pytest.param(
            lambda n: f"dt=2026-{n % 12:02}/hour={n % 24}/{n:06}.parquet", id="partitions"
        ),
        pytest.param(lambda n: f"\u00e9/{n:06}", id="beyond ASCII"),
    ],
)
def test_2_400_pages_take_a_tenth_of_the_rounds_and_less_than_twice_the_requests(
    monkeypatch: pytest.MonkeyPatch, name: Callable[[int], str]
) -> None:
    monkeypatch.setattr(listings, "PAGE", 50)
    pages = 2_400
    keys = Keys(f"lake/sales/{name(number)}" for number in range(pages * listings.PAGE))
    listed = sum(1 for _ in list_objects(keys.ports, BUCKET, ["lake/sales/"]))
    assert listed == pages * listings.PAGE
    assert keys.requests <= 2 * pages
    assert keys.rounds <= pages / 10


@pytest.mark.parametrize("name", ["part-{0:06}-7f-c000.parquet", "dt={1:03}/{0:06}.parquet"])
def test_uploads_whose_keys_are_known_are_listed_at_once_and_hardly_twice(name: str) -> None:
    files = 30_000
    keys = Keys(f"t/{name.format(number, number % 365)}" for number in range(files))
    by_chance = random.Random(7)
    sample = [key for key in keys.keys if by_chance.random() < 1 / 16]
    by_chance.shuffle(sample)
    cuts = cuts_between(sample, files=files)
    listed = [one.key for one in list_uploads(keys.ports, BUCKET, "t/", cuts)]
    assert sorted(listed) == keys.keys
    assert keys.requests <= 1.5 * files / listings.PAGE
    assert keys.rounds <= 4  # of at most `RANGES`


@example(found={"a1", "a2"}, prefix="a", cuts={"\x01", "a1", "b"}, size=1)
@given(
    st.sets(KEYS, max_size=60),
    st.sampled_from(["", "a", "a/", "\u00e9"]),
    st.just(set()) | st.sets(KEYS, max_size=9),
    st.integers(1, 4),
)
def test_i4_whatever_the_cuts_every_upload_is_listed_once(
    found: set[str], prefix: str, cuts: set[str], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listings, "PAGE", size)
        patch.setattr(listings, "RANGES", 3)
        keys = Keys(found)
        listed = [one.key for one in list_uploads(keys.ports, BUCKET, prefix, sorted(cuts))]
        assert sorted(listed) == sorted(key for key in found if key.startswith(prefix))


def test_i12_keys_that_are_chosen_for_their_digests_are_cut_no_more_often() -> None:
    chosen = [f"t/{number:05}" for number in range(30_000)]
    assert len(cuts_between(chosen, files=30_000)) == 40
    assert cuts_between(chosen[:1], files=30_000) == []
    assert cuts_between([], files=0) == cuts_between(chosen[:700], files=700) == []


def test_prefixes_are_listed_side_by_side_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "PAGE", 5)
    monkeypatch.setattr(listings, "RANGES", 4)
    keys = Keys(f"t/dt={day}/{number:02}" for day in range(10) for number in range(20))
    found = list_objects(keys.ports, BUCKET, (f"t/dt={day}/" for day in range(10)))
    assert len(list(islice(found, 1))) == keys.rounds == 1
    assert keys.requests <= 4
    assert sorted(one.key for one in found) == keys.keys[1:]


def test_manifests_are_verified_without_listing_what_others_have_open_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listings, "PAGE", 1)
    monkeypatch.setattr(listings, "RANGES", 1)
    world, directory = World(), job_directory()
    given: list[OpenUpload] = []
    listing = world.store.list_uploads

    def noted(bucket: str, prefix: str, *, after: str = "") -> Iterator[OpenUpload]:
        for upload in listing(bucket, prefix, after=after):
            given.append(upload)
            yield upload

    for number in range(20):
        key = f"sales/z{number:02}.csv"
        world.store.create_upload(BUCKET, key, metadata={}, content_type="text/csv")
    files = {f"{name}-{JOB}.csv": b"x" for name in "ab"}
    world.ask(directory, files=files)
    monkeypatch.setattr(world.store, "list_uploads", noted)
    world.ports = replace(world.ports, store=world.store)  # a plan's own takes listings whole
    seen: list[int] = []
    world.plan.run_before("decide", lambda: seen.append(len(given)))
    world.run(directory)
    assert seen == [3]

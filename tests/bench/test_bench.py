import json
import os
import threading
from pathlib import Path

import pytest

import s3commit
from bench import __main__ as command
from bench import cold, documents, ledger, reading, sizes, start, steps
from bench.figures import Figure, Sample
from bench.fleet import Fleet
from bench.pipeline import BUCKET, BenchWeed, Committer, environment, make_pipeline
from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.layout import is_data
from tests.servers import free_ports


def test_jobs_without_rights_on_the_bucket_are_committed_one_after_the_other_by_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BenchWeed(tmp_path, free_ports(4)) as weed:
        for name, value in environment(weed.ADMIN, weed.endpoint).items():
            monkeypatch.setenv(name, value)
        client = make_client()
        client.create_bucket(Bucket=BUCKET)
        store = S3ObjectStore(client)
        for name, value in environment(weed.WRITER, weed.endpoint).items():
            monkeypatch.setenv(name, value)
        pipeline = make_pipeline(store)
        with Fleet(environment(weed.ADMIN, weed.endpoint)) as fleet:
            for prefix in ("data/one/", "data/two/"):
                with Committer(pipeline, prefix, fleet):
                    job = s3commit.open_job(f"s3://{BUCKET}/{prefix}")
                    with job.task("0") as task, task.open("a.bin") as file:
                        file.write(b"bench")
                    job.commit_timeout = 20
                    result = job.commit([task.counted])
                assert result.files == 1
                found = [one.key for one in store.list(BUCKET, prefix)]
                [key] = [key for key in found if is_data(key.removeprefix(prefix))]
                assert store.get(BUCKET, key, max_bytes=9).body == b"bench"
            assert fleet.cpu > 0
    assert not [one for one in threading.enumerate() if one.name == "bench-committer"]


def test_functions_start_cold_with_nothing_but_the_layers(tmp_path: Path) -> None:
    function = cold.Function.start("dispatch", "import aws_lambda_powertools", tmp_path)
    function.end()
    assert 0 < function.init < 60
    with pytest.raises(RuntimeError, match="rich ended"):
        cold.Function.start("rich", "import rich", tmp_path)


def test_a_new_worker_of_sparks_loads_for_its_first_task_what_that_needs() -> None:
    with cold.on_moto():
        cpu, modules = start.first_task()
    assert 0 < cpu < 60
    assert {"pandas", "boto3", "s3commit.writer.job"}.isdisjoint(modules)
    assert "s3commit.aws.s3" in modules


@pytest.mark.long
def test_a_small_job_is_carried_out_by_cold_functions() -> None:
    """As it appends, none of them is there to remove what it replaces."""
    figures = cold.cold(lambda _: None, rounds=1)
    inits = {figure.what for figure in figures if figure.benchmark == "cold init of a function"}
    assert inits == {"dispatch", "decide", "complete", "end"}
    whole = figures[-1].measured.median
    assert whole > sum(figure.measured.median for figure in figures[: len(inits)])


def test_the_ledger_is_measured_among_others_and_alone() -> None:
    locks, sweep = ledger.ledger(lambda _: None, holders=5, replaces=2, ended=(1, 4))
    assert len(locks.measured.values) == len(locks.against.values) == 2
    assert sweep.measured == sweep.against  # no request for a job that has ended long ago


@pytest.mark.long
def test_the_steps_of_a_job_are_measured_beside_their_baselines() -> None:
    figures = steps.steps(lambda _: None, rounds=1, manifests=2, page=20, more=3)
    assert [figure.what for figure in figures] == [
        "ingest a manifest of 100 files",
        "a completion",
        "read a manifest of 100 files",
        "list a page of 20 uploads",
        "VerifyManifests, 1,000 files",
        "publishing 1,000 files",
        "ingest a manifest",
        "VerifyManifests, 1,000 files",
        "publishing 1,000 files",
    ]
    assert all(figure.measured.least > 0 < figure.against.least for figure in figures)
    assert figures[2].ratio > 1  # it decodes what it reads


@pytest.mark.long
def test_each_call_of_a_job_is_measured_by_its_size(tmp_path: Path) -> None:
    taken = {tasks: sizes.measured(tasks) for tasks in (1, 2)}
    heads, _, *rows = sizes.table(taken).splitlines()
    assert heads == "| call | 100 files | 200 files |"
    assert [row.split()[1] for row in rows] == [
        *("SealJob", "VerifyManifests", "CheckConditions", "DecideCommit"),
        *("BeginPublish", "PublishSuccess", "TidyUp"),
    ]
    assert all(cpu > 0 for found in taken.values() for cpu, _ in found.values())
    sizes.plot(taken, tmp_path / "sizes.svg")
    assert "files of the job" in (tmp_path / "sizes.svg").read_text()


def test_the_largest_job_of_the_documents_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FILES", 40)
    monkeypatch.setattr(reading, "TASKS", 4)
    reading.READERS["whole job"](b"")


def test_the_command_keeps_machine_and_figures_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = Figure("write", "CPU", "s", Sample((3,)), "Spark", Sample((1,)), goal=2)
    monkeypatch.setattr(cold, "cold", lambda say: [missed])
    file = tmp_path / "results.json"
    assert command.main(["--only", "cold", "--json", str(file)]) == 1
    kept = json.loads(file.read_text())
    assert kept["figures"][0]["ratio"] == 3
    assert kept["machine"]["cores"] == os.cpu_count()
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "shape"), [("pendingset", "members"), ("job", "objects in objects")]
)
def test_i12_the_worst_document_fits_into_the_function_that_reads_it(kind: str, shape: str) -> None:
    """All of them: ``python -m bench --only documents``."""
    worst = documents.worst(documents.KINDS[kind], shape)
    assert len(worst) > 0.99 * documents.KINDS[kind].max_bytes
    assert not documents.measured(kind, shape).missed

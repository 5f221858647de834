"""The guide's pages for Spark do what they say."""

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jinja2
import pytest
from pyspark.sql import SparkSession

from s3commit.spark import batch_writer, read, write
from tests.guide import GUIDE, blocks, program, run_examples
from tests.spark.tiny import BUCKET, Place


@pytest.fixture
def run_page(
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Callable[[str], None]:
    """Run a page's code as one program, in this session, and compare what it prints."""

    def run(name: str) -> None:
        monkeypatch.setenv("PYSPARK_PYTHON", "restored afterwards")
        code, expected = program(GUIDE / name)
        lake = place.destination.prefix.split("/")[0]
        code = re.sub("(s3a?)://lake/", rf"\1://{BUCKET}/{lake}/", code)
        code = code.replace("/data/", f"{tmp_path}/")
        exec(compile(code, name, "exec"), {"__name__": "guide_page"})
        assert capsys.readouterr().out.splitlines() == expected

    return run


@pytest.mark.usefixtures("spark", "copies")
def test_the_spark_page_does_what_it_says(run_page: Callable[[str], None]) -> None:
    run_page("spark.md")


@pytest.mark.usefixtures("copies")
def test_the_streaming_page_does_what_it_says(
    spark: SparkSession, tmp_path: Path, run_page: Callable[[str], None]
) -> None:
    events = spark.range(0, 3, 1, 1).selectExpr("id", "'2026-11-21' dt")
    events.write.json(str(tmp_path / "events"))
    run_page("streaming.md")


@pytest.mark.usefixtures("copies")
def test_the_compaction_page_makes_one_file_of_three(spark: SparkSession, place: Place) -> None:
    events = spark.range(0, 3, 1, 3).selectExpr("id", "'2026-11-21' dt")
    write(events, place.uri, mode="append", partition_by="dt")
    names: dict[str, Any] = {"spark": spark, "TABLE": place.uri, "day": "2026-11-21"}
    for block in blocks(GUIDE / "compaction.md", "python", "    "):
        exec(textwrap.dedent(block), names)
    assert (names["files"], names["result"].replaced, names["result"].files) == (3, 3, 1)
    assert sorted(row.id for row in read(spark, place.uri).collect()) == [0, 1, 2]


@pytest.mark.usefixtures("copies")
def test_the_docstrings_examples_run(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    df = spark.range(3).selectExpr("id", "'2026-11-21' dt")
    df.write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(df.schema).parquet(str(tmp_path / "events"))
    names: dict[str, Any] = {"spark": spark, "df": df, "stream": stream}
    names |= {"checkpoint": str(tmp_path / "checkpoint")}
    names |= {one.__name__: one for one in (write, batch_writer, read)}
    for one in (write, batch_writer, read):
        run_examples(one, place.uri.removeprefix("s3://"), names)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert read(spark, f"{place.uri}/events/").count() == 3


# The page for Airflow: the run of a task is its key, by Airflow's own templates


class FakeAirflow(ModuleType):
    """As much of ``airflow.sdk`` as the page uses: a DAG runs its tasks when it is called."""

    def __init__(self) -> None:
        super().__init__("airflow.sdk")
        self.run_id = ""
        self.results: list[Any] = []
        self.given: list[list[Any]] = []
        self.dags: list[Callable[[], None]] = []

    def dag(self, **_: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
        def decorate(function: Callable[[], None]) -> Callable[[], None]:
            self.dags.append(function)
            return lambda: None  # Airflow runs it later

        return decorate

    def task(self, **_: Any) -> Callable[[Callable[..., Any]], Callable[..., None]]:
        def decorate(function: Callable[..., Any]) -> Callable[..., None]:
            def run(*arguments: str | dict[str, str]) -> None:
                given = [*map(self.rendered, arguments)]
                self.given.append(given)
                self.results.append(function(*given))

            return run

        return decorate

    def rendered(self, text: str | dict[str, str]) -> Any:
        """The template, or each of a mapping's, as Airflow renders it with the page's values."""
        if isinstance(text, dict):
            return {name: self.rendered(one) for name, one in text.items()}
        values = {
            "ds": self.run_id.removeprefix("scheduled__"),
            "run_id": self.run_id,
            "dag": SimpleNamespace(dag_id="sales"),
            "task": SimpleNamespace(task_id="load"),
            "ti": SimpleNamespace(map_index=-1),
        }
        return str(jinja2.Template(text, undefined=jinja2.StrictUndefined).render(values))


def test_the_dag_of_the_guide_adds_a_days_rows_once_however_often_it_is_tried(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for day in ("2026-11-22", "2026-11-23"):
        orders = spark.range(0, 3, 1, 1).selectExpr("id", f"'{day}' dt")
        orders.write.json(str(tmp_path / "orders" / day))
    airflow = FakeAirflow()
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", airflow)
    (code,) = blocks(GUIDE / "airflow.md", "python")
    lake = f"s3://{BUCKET}/{place.destination.prefix}"
    code = code.replace("s3://lake/", lake).replace("/data/", f"{tmp_path}/")
    exec(compile(code, "airflow.md", "exec"), {"__name__": "guide_page"})
    (dag,) = airflow.dags
    for day in ("2026-11-22", "2026-11-23", "2026-11-23"):
        airflow.run_id = f"scheduled__{day}"
        dag()
    run = "scheduled__2026-11-22"
    labels = {"dag": "sales", "run": run, "task": "load"}
    assert airflow.given[0][1:] == [f"sales/{run}/load/-1", labels]
    first, second, again = airflow.results
    assert [one["rows"] for one in airflow.results] == [3, 3, 0]
    assert (again["already_committed"], again["job_id"]) == (True, second["job_id"])
    assert first["job_id"] != second["job_id"]
    assert len([name for name in place.data if name.startswith("orders/dt=")]) == 2

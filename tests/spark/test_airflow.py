"""The guide's page for Airflow: the run of a task is its key, by Airflow's own templates."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import jinja2
import pytest

from tests.guide import GUIDE, blocks
from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FakeAirflow(ModuleType):
    """As much of ``airflow.sdk`` as the page uses: a DAG runs its tasks when it is called."""

    def __init__(self) -> None:
        super().__init__("airflow.sdk")
        self.run_id = ""
        self.results: list[Any] = []
        self.keys: list[str] = []
        self.dags: list[Callable[[], None]] = []

    def dag(self, **_: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
        def decorate(function: Callable[[], None]) -> Callable[[], None]:
            self.dags.append(function)
            return lambda: None  # Airflow runs it later

        return decorate

    def task(self, **_: Any) -> Callable[[Callable[[str, str], Any]], Callable[..., None]]:
        def decorate(function: Callable[[str, str], Any]) -> Callable[..., None]:
            def run(*arguments: str) -> None:
                day, key = map(self.rendered, arguments)
                self.keys.append(key)
                self.results.append(function(day, key))

            return run

        return decorate

    def rendered(self, text: str) -> str:
        """The template as Airflow renders it, with the values that the page uses."""
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
    assert airflow.keys[0] == "sales/scheduled__2026-11-22/load/-1"
    first, second, again = airflow.results
    assert [one["rows"] for one in airflow.results] == [3, 3, 0]
    assert (again["already_committed"], again["job_id"]) == (True, second["job_id"])
    assert first["job_id"] != second["job_id"]
    assert len([name for name in place.data if name.startswith("orders/dt=")]) == 2

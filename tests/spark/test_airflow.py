"""The run of an Airflow task as a key, in Airflow's own process and outside of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.airflow import with_run
from s3commit.spark.options import parse_options
from tests.guide import GUIDE, blocks
from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = {
    "AIRFLOW_CTX_DAG_ID": "sales",
    "AIRFLOW_CTX_DAG_RUN_ID": "scheduled__2026-11-23T00:00:00+00:00",
    "AIRFLOW_CTX_TASK_ID": "load",
    "AIRFLOW_CTX_MAP_INDEX": "-1",
    "AIRFLOW_CTX_TRY_NUMBER": "2",
}
KEY = "sales/scheduled__2026-11-23T00:00:00+00:00/load/-1"


def test_the_key_is_dag_run_task_and_index_whatever_the_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert with_run("{airflow}", RUN) == KEY
    assert with_run("{airflow} orders", {**RUN, "AIRFLOW_CTX_TRY_NUMBER": "3"}) == f"{KEY} orders"
    assert with_run("a key {of one's own}", {}) == "a key {of one's own}"
    for name, value in RUN.items():
        monkeypatch.setenv(name, value)
    options = parse_options("s3://bucket/t/", {"idempotencykey": "{airflow}"})
    assert options.idempotency_key == KEY


def test_a_run_that_is_not_whole_is_refused() -> None:
    """Without its index, the instances of a mapped task would be taken for tries of one."""
    unmapped = {name: value for name, value in RUN.items() if "INDEX" not in name}
    with pytest.raises(InvalidInputError, match="AIRFLOW_CTX_MAP_INDEX is not set; Airflow does"):
        with_run("{airflow}", unmapped)
    with pytest.raises(InvalidInputError, match=r"DAG_ID, .* not set; this is no task of Airflow"):
        with_run("{airflow}", {})


@pytest.mark.parametrize("module", ["airflow.sdk", "airflow.operators.python"])
def test_in_airflows_own_process_the_running_task_says_it(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    task = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=7)
    for name in ("airflow", "airflow.operators", module):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    said = sys.modules[module]
    monkeypatch.setattr(said, "get_current_context", lambda: {"ti": task}, raising=False)
    assert with_run("{airflow}", RUN) == "d/r/t/7"

    def outside() -> None:
        raise RuntimeError("no context")

    monkeypatch.setattr(said, "get_current_context", outside)
    assert with_run("{airflow}", RUN) == KEY


# The guide's page.


class FakeAirflow(ModuleType):
    """As much of ``airflow.sdk`` as the page uses: a DAG runs its tasks when it is called."""

    def __init__(self) -> None:
        super().__init__("airflow.sdk")
        self.ti = SimpleNamespace(dag_id="sales", run_id="", task_id="load", map_index=-1)
        self.results: list[Any] = []
        self.dags: list[Callable[[], None]] = []

    def dag(self, **_: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
        def decorate(function: Callable[[], None]) -> Callable[[], None]:
            self.dags.append(function)
            return lambda: None  # Airflow runs it later

        return decorate

    def task(self, **_: Any) -> Callable[[Callable[[str], Any]], Callable[[str], None]]:
        def decorate(function: Callable[[str], Any]) -> Callable[[str], None]:
            def run(argument: str) -> None:
                assert argument == "{{ ds }}"
                self.results.append(function(self.ti.run_id))

            return run

        return decorate

    def get_current_context(self) -> dict[str, Any]:
        return {"ti": self.ti}


def test_the_dag_of_the_guide_adds_a_days_rows_once_however_often_it_is_tried(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for day in ("2026-11-22", "2026-11-23"):
        orders = spark.range(0, 3, 1, 1).selectExpr("id", f"'{day}' dt")
        orders.write.json(str(tmp_path / "orders" / day))
    airflow = FakeAirflow()
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", airflow)
    code, _, _ = blocks(GUIDE / "airflow.md", "python")
    lake = f"s3://{BUCKET}/{place.destination.prefix}"
    code = code.replace("s3://lake/", lake).replace("/data/", f"{tmp_path}/")
    exec(compile(code, "airflow.md", "exec"), {"__name__": "guide_page"})
    (dag,) = airflow.dags
    for airflow.ti.run_id in ("2026-11-22", "2026-11-23", "2026-11-23"):
        dag()
    first, second, again = airflow.results
    assert [one["rows"] for one in airflow.results] == [3, 3, 0]
    assert (again["already_committed"], again["job_id"]) == (True, second["job_id"])
    assert first["job_id"] != second["job_id"]
    assert len([name for name in place.data if name.startswith("orders/dt=")]) == 2


def test_the_settings_and_the_template_of_the_guide_give_the_same_key() -> None:
    _, settings, template = blocks(GUIDE / "airflow.md", "python")
    names: dict[str, Any] = {}
    exec(settings, names)
    exec(template, names)
    said = names["get_airflow_context_vars"]({"ti": SimpleNamespace(map_index=-1)})
    exported = {f"AIRFLOW_CTX_{name.upper()}": value for name, value in said.items()}
    unmapped = {name: value for name, value in RUN.items() if "INDEX" not in name}
    assert with_run("{airflow}", {**unmapped, **exported}) == KEY
    rendered = {
        "{{ dag.dag_id }}": RUN["AIRFLOW_CTX_DAG_ID"],
        "{{ run_id }}": RUN["AIRFLOW_CTX_DAG_RUN_ID"],
        "{{ task.task_id }}": RUN["AIRFLOW_CTX_TASK_ID"],
        "{{ ti.map_index }}": "-1",
    }
    key = names["KEY"]
    for name, value in rendered.items():
        key = key.replace(name, value)
    assert key == KEY

"""The run of an Airflow task as a key, in Airflow's own process and outside of it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.airflow import with_run
from s3commit.spark.options import parse_options

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
    options = parse_options({"path": "s3://bucket/t/", "idempotencykey": "{airflow}"})
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

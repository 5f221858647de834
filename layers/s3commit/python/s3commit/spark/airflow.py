"""The run of an Airflow task, as an idempotency key: ``idempotencyKey="{airflow}"``.

Airflow exports dag, run and task to each task's process as AIRFLOW_CTX_DAG_ID, …DAG_RUN_ID and
…TASK_ID (airflow.sdk.execution_time.context.context_to_airflow_vars; more can be added:
https://airflow.apache.org/docs/apache-airflow/stable/howto/export-more-env-vars.html), but not the
index of a mapped task, which is read from the context or has to be given: without it, all but one
of a mapped task's instances would count as tries of one, and add nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.who import AIRFLOW

PLACE: Final = "{airflow}"
_NAMES: Final = AIRFLOW[:4]  # without the try


def with_run(key: str, environment: Mapping[str, str] = os.environ) -> str:
    """``key`` with ``{airflow}`` replaced by ``dag/run/task/index``, the same in every try.

    The running task is asked if this is its process, else the environment. Raises
    `InvalidInputError` (``NO_AIRFLOW``) if either does not say all four.
    """
    if PLACE not in key:
        return key
    task = _running_task()
    if task is not None:
        values = [str(one) for one in (task.dag_id, task.run_id, task.task_id, task.map_index)]
    else:
        values = [environment.get(name, "") for name in _NAMES]
    missing = [name for name, value in zip(_NAMES, values, strict=True) if not value]
    if missing:
        hint = (
            "Airflow does not export it: give it to this process, as in"
            " env_vars={'AIRFLOW_CTX_MAP_INDEX': '{{ ti.map_index }}'}"
            if missing == [_NAMES[-1]]
            else "this is no task of Airflow's: give a key of your own"
        )
        raise InvalidInputError(
            f"option idempotencyKey={key!r}: {', '.join(missing)} is not set; {hint}. Nothing was"
            " written.",
            code="NO_AIRFLOW",
        )
    return key.replace(PLACE, "/".join(values))


def _running_task() -> Any:
    """The task instance that this process runs (`airflow` is imported by then), or None."""
    if "airflow" not in sys.modules:
        return None
    try:
        try:
            from airflow.sdk import get_current_context  # type: ignore # noqa: PLC0415
        except ImportError:  # Airflow 2
            from airflow.operators.python import (  # type: ignore # noqa: PLC0415
                get_current_context,
            )
        return get_current_context()["ti"]
    except Exception:  # outside of a task it raises what its release raises
        return None

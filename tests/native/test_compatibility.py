"""What Spark writes is as by its own protocol, differs as the guide says, or is refused."""

import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.native.case import Case, Differs, Refused, run
from tests.native.cases_catalog import CATALOG
from tests.native.cases_frames import FRAMES
from tests.native.cases_options import OPTIONS
from tests.native.cases_sql import SQL, S
from tests.native.conftest import settings
from tests.native.sides import CONTROL, FAILURES, Side, found_in, kind, message, side
from tests.spark.tiny import BUCKET, Place, TinyPipeline

pytestmark = pytest.mark.usefixtures("beside_sparks_own")

CASES = [*SQL, *CATALOG, *FRAMES, *OPTIONS]
MENDS = (
    r"CREATE TABLE \S+ USING parquet LOCATION '\S+'"
    r"|MSCK REPAIR TABLE [\w.`]+[\w`](?: SYNC PARTITIONS)?"
)
GROUP = "what-is-refused"


@pytest.mark.parametrize(
    ("case", "scheme"),
    [pytest.param(case, "s3a", id=case.name) for case in CASES]
    + [pytest.param(case, "s3", id=f"{case.name}, s3") for case in CASES if case.by_s3],
)
def test_a_write(
    spark: SparkSession, tiny: TinyPipeline, place: Place, case: Case, scheme: str
) -> None:
    assert case.documented(), case.verdict.says
    with settings(spark, **case.settings):
        with side(spark, tiny, CONTROL, case.form, scheme) as control:
            run(case.before, control)
            run(case.write, control)
            assert control.jobs() == 0
            assert control.keys()
            wanted = {} if isinstance(case.verdict, Refused) else control.found()
        with side(spark, tiny, BUCKET, case.form, scheme) as ours:
            run(case.before, ours)
            if isinstance(case.verdict, Refused):
                refused(ours, case, case.verdict)
                return
            run(case.write, ours)
            assert ours.uploads() == []
            found = ours.found()
            if isinstance(case.verdict, Differs):
                assert count(found) == case.verdict.ours
                assert count(wanted) == case.verdict.control
                return
            assert (ours.steps, found) == (control.steps, wanted)
            assert bool(ours.jobs()) is case.verdict.jobs


def refused(ours: Side, case: Case, verdict: Refused) -> None:
    """By one line of ours, before Spark runs anything; nothing is written."""
    ours.settle()
    before = found_in(ours.spark, ours.db), ours.keys(), ours.uploads()
    context = ours.spark.sparkContext
    context.setJobGroup(GROUP, case.name)
    try:
        with pytest.raises(FAILURES) as raised:
            run(case.write, ours)
        tasks = context.statusTracker().getJobIdsForGroup(GROUP)
    finally:
        ours.spark._jsc.clearJobGroup()
    line = message(raised.value)
    assert kind(raised.value) == verdict.code, str(raised.value)
    assert "\n" not in line
    assert "Nothing was written" in line or "wrote nothing" in line
    assert verdict.line in line
    assert list(tasks) == []
    assert (found_in(ours.spark, ours.db), ours.keys(), ours.uploads()) == before


def count(found: dict[str, Any]) -> int:
    """How many rows there are in the only table, or in the path."""
    return len(found["t"][0] if "t" in found else found["path"])


def test_what_the_catalog_lacks_after_an_unknown_outcome(
    spark: SparkSession, tiny: TinyPipeline, place: Place
) -> None:
    """The line has the statement that mends it; with it all is as by Spark's own."""
    programs = (
        "CREATE TABLE t USING parquet PARTITIONED BY (dt) AS SELECT * FROM s",
        S.removesuffix(";\n"),
        "INSERT OVERWRITE t SELECT id, 'new' FROM s",
    )
    with side(spark, tiny, CONTROL) as control:
        control.script(";\n".join(programs))
        wanted = control.found()
    with side(spark, tiny, BUCKET) as ours:
        for program in programs:
            with (
                settings(spark, spark__s3commit__commitTimeout="1s"),
                tiny.held(),
                pytest.raises(FAILURES, match="OUTCOME_UNKNOWN") as raised,
            ):
                spark.sql(program)
            ours.settle()
            for statement in re.findall(MENDS, message(raised.value)):
                spark.sql(statement)
        assert ours.found() == wanted

"""Names in keys by readers: which one finds the rows behind each (docs/guide/refused_writes.md).

``python -m tests.names`` prints the page's table from a run of all readers, Spark with S3A
(``make test-jvm``). A table has row 1 behind the name, and row 0; row 9 is another table's.
"""

import io
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby, product
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.options import make_options
from s3commit.writer.place import escape
from s3commit.writer.target import file_key
from tests.guide import GUIDE
from tests.servers import NO_NETWORK, moto_server

JOB: Final = "0b6f6f0e-0000-4000-8000-000000000001"
# Patterns, and what a URI says otherwise, match the other table, `xn`.
NAMES: Final = (
    *("n", "_n", ".n", "~n", "=n", "a n", "én", "n._COPYING_", "_metadata"),
    *("#n", "%78n", "*n", "?n", "[xy]n", "{x,y}n", "\\n"),
)
# The table, and in it the file behind the name and another. What `partition_by` makes is escaped.
PLACES: Final[Mapping[str, tuple[str, str, str]]] = {
    "table": ("{}/", "part-1.parquet", "part-0.parquet"),
    "partition column": ("t/", "{}=1/part-1.parquet", "{}=0/part-0.parquet"),
    "partition value": ("t/", "p={}/part-1.parquet", "p=0/part-0.parquet"),
    "other directory": ("t/", "{}/part-1.parquet", "part-0.parquet"),
    "file": ("t/", "{}.parquet", "part-0.parquet"),
}
Reader = Callable[[str], tuple[list[str], list[int]]]  # the columns, and the ids
Fates = dict[tuple[str, str], str]  # by place and name


def fill(s3: Any, bucket: str) -> dict[tuple[str, str], str]:
    """Put a table of each name at each place; their URIs."""
    tables = {}
    for number, (place, name) in enumerate((place, name) for place in PLACES for name in NAMES):
        shown = escape(name) if place.startswith("partition") else name
        table, one, other = (part.replace("{}", shown) for part in PLACES[place])
        root = f"names/{number}/"
        for row, key in ((1, table + one), (0, table + other), (9, "xn/part-0.parquet")):
            file = io.BytesIO()
            parquet.write_table(pa.table({"id": [row]}), file)
            s3.put_object(Bucket=bucket, Key=root + key, Body=file.getvalue())
        tables[place, name] = f"s3://{bucket}/{root}{table}"
    return tables


def found(read: Reader, uri: str) -> str:
    """What a reader, which gives columns and rows, makes of a table."""
    try:
        rows = read(uri)[1]
    except KeyError:  # the column: no file is left that has it
        return "skips"
    except Exception:
        return "error"
    return "yes" if sorted(rows) == [0, 1] else "**other rows**" if 9 in rows else "skips"


def written(place: str, name: str) -> str:
    """What a write makes of it."""
    table, path, _ = (part.replace("{}", name) for part in PLACES[place])
    by = name if place == "partition column" else None
    for check in (True, False):
        try:
            options = make_options(f"s3://lake/{table}", partition_by=by, check_names=check)
            file_key(JobDirectory(options.destination, JOB), path, check_names=check)
        except InvalidInputError:
            continue
        return "yes" if check else "on request"
    return "refused"


WRITTEN: Final = {(place, name): written(place, name) for place in PLACES for name in NAMES}


def lines(of_readers: Mapping[str, Fates]) -> Iterator[str]:
    """The table: what shares its fate is one row, without those that all read."""
    columns = {"written": WRITTEN, **of_readers}
    heads = ["of a", "name", *columns]
    yield f"| {' | '.join(heads)} |".replace("pyarrow", "pyarrow, pandas")
    yield "|---" * len(heads) + "|"
    shared = defaultdict[tuple[str, str], list[str]](list)
    for place in PLACES:
        fates = {name: [one[place, name] for one in columns.values()] for name in NAMES}
        for fate, names in groupby(sorted(NAMES, key=fates.__getitem__), fates.__getitem__):
            if {*fate} != {"yes"}:
                shared[" ".join(f"`{name}`" for name in names), " | ".join(fate)].append(place)
    for (shown, said), places in shared.items():
        yield f"| {', '.join(places)} | {shown} | {said} |"


def on_the_page(column: str) -> Fates:
    """What the page says, by the column whose head has the word."""
    page = (GUIDE / "refused_writes.md").read_text()
    section = page.partition("\n## Names\n")[2].partition("\n## ")[0]
    head, _, *table = [line[2:-2].split(" | ") for line in re.findall(r"^\|.*\|$", section, re.M)]
    [index] = [number for number, one in enumerate(head) if column in one]
    fates = dict.fromkeys(WRITTEN, "yes")
    for places, names, *others in table:
        named = product(places.split(", "), re.findall("`(.+?)`", names))
        fates |= dict.fromkeys(named, others[index - 2])
    return fates


def main() -> None:
    """Run all readers, and print."""
    os.environ |= NO_NETWORK
    from pyspark.sql import SparkSession

    from s3commit.aws.clients import make_client
    from tests.contract.given import make_bucket
    from tests.native import s3a
    from tests.native.test_readers import read
    from tests.writer.test_readers import connected, readers

    with moto_server() as endpoint, connected(endpoint) as duck:
        os.environ["AWS_ENDPOINT_URL"] = endpoint
        make_bucket(s3 := make_client(), "lake")
        tables = fill(s3, "lake")
        builder = SparkSession.builder.master("local[1]").config(map={**s3a.settings(endpoint)})
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        each: dict[str, Reader] = {"Spark": partial(read, spark), **readers("parquet", duck)}
        fates = {
            name: {key: found(read, uri) for key, uri in tables.items()}
            for name, read in each.items()
        }
        spark.stop()
    assert fates["pyarrow"] == fates.pop("pandas")
    print(*lines(fates), sep="\n")


if __name__ == "__main__":
    main()

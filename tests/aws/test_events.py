"""What is no event of S3 is refused as a whole."""

from __future__ import annotations

import pytest

from s3commit.aws.events import announced_objects
from s3commit.core.model.errors import InvalidInputError


@pytest.mark.parametrize("size", ["1e999", "NaN", '"x"', "{}"])
def test_a_size_that_is_no_number_of_bytes_is_refused(size: str) -> None:
    body = (
        f'{{"Records":[{{"s3":{{"bucket":{{"name":"b"}},"object":{{"key":"k","size":{size}}}}}}}]}}'
    )
    with pytest.raises(InvalidInputError, match="no event of S3"):
        announced_objects(body)

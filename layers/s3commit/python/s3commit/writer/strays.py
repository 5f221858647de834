"""Arguments that a call does not have: refused as what else it refuses, with what was meant."""

import inspect
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, Final, TypeVar, cast

from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.options import bad, nothing_written

# Keywords of pandas, pyarrow, polars, Spark and Delta Lake whose names are unlike ours.
_MEANT: Final = {
    **dict.fromkeys(("existing_data_behavior", "if_exists", "overwrite", "save_mode"), "mode"),
    **dict.fromkeys(("root_path", "base_dir", "file", "destination"), "path"),
    "codec": "compression",
}
_AWS: Final = "boto3_session, or the standard AWS configuration, says how to connect"
_OPTIONS: Final = "each option is a keyword"
_SCHEMA: Final = "files have the columns of the rows"
_LEFT_OUT: Final = {
    **dict.fromkeys(("storage_options", "filesystem"), _AWS),
    **dict.fromkeys(("format", "engine"), "tables are written as Parquet"),
    **dict.fromkeys(("schema", "merge_schema", "schema_mode"), _SCHEMA),
    **dict.fromkeys(("write options", "batch_writer options", "write_table options"), _OPTIONS),
    "batch_writer idempotency_key": "each batch has a key of its own",
    "open_job format": "the tasks open files of any format",
}
_Call = TypeVar("_Call", bound=Callable[..., Any])


def refusing_strays(call: _Call) -> _Call:
    """Have a call raise `InvalidInputError` (``UNKNOWN_OPTION``) where Python's is `TypeError`.

    And ``BAD_OPTION`` for a switch that is neither on nor off: the text ``"false"`` would be on.
    """
    signature, name = inspect.signature(call), call.__name__

    @wraps(call)
    def checked(*given: Any, **named: Any) -> Any:
        with nothing_written():
            try:
                signature.bind(*given, **named)
            except TypeError as error:
                known = [*signature.parameters]
                stray = next((one for one in named if one not in known), None)
                why = _what_is_meant(name, stray, known) if stray else error
                raise InvalidInputError(f"{name}: {why}", code="UNKNOWN_OPTION") from None
            for one, value in named.items():
                is_switch = isinstance(signature.parameters[one].default, bool)
                if is_switch and not isinstance(value, bool | None):
                    raise bad(one, value, "True or False")
        return call(*given, **named)

    return cast("_Call", checked)


def _what_is_meant(call: str, stray: str, known: Sequence[str]) -> str:
    spelled = re.sub("(?<=[a-z])(?=[A-Z])", "_", stray).lower()
    if why := _LEFT_OUT.get(f"{call} {spelled}") or _LEFT_OUT.get(spelled):
        return f"leave out {stray}, since {why}"
    likely = get_close_matches(_MEANT.get(spelled, spelled), known, n=1)
    return f"there is no keyword {stray}: give {(likely or [', '.join(known)])[0]}"

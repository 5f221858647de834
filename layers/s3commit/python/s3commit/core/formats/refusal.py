"""The error of a step as text, which a function's caller reads: its code, then its message."""

import json
import re

from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.outcome import Failure

_REFUSAL = re.compile(r"\[([A-Z][A-Z0-9_]*)\] (.*)", re.DOTALL)  # as `refusal_text` words it
_MESSAGE = re.compile(r'"errorMessage"\s*:\s*("(?:[^"\\]|\\.)*")')


def refusal_text(code: str, message: str) -> str:
    """How a refusing handler words its error, for `parse_refusal` on the other side.

    Bounded: of a longer ``Cause`` than 32,768 characters Step Functions would keep a part.
    """
    return f"[{code}] {one_line(message)}"


def parse_refusal(cause: str, code: str = "REFUSED") -> Failure:
    """Read the code and message out of a failed Lambda call's ``Cause``; ``code`` if it has none.

    The cause of a step that raised is JSON with ``errorType``, ``errorMessage`` and ``stackTrace``:
    https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html. Of a longer one than 32,768
    characters Step Functions keeps a part.
    """
    message = _MESSAGE.search(cause)
    text = str(json.loads(message[1], strict=False)) if message else cause
    refusal = _REFUSAL.fullmatch(text)
    if refusal is not None:
        return Failure(one_line(refusal[1], 100), one_line(refusal[2]))
    return Failure(code, one_line(" ".join(text.split()), 1000))

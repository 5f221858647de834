"""What a resource's policy in a template allows a service of AWS to do.

Of the evaluation logic, the part that these policies have:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Call:
    """A request of a service: ``sns:Publish`` to a resource, with the keys of its context."""

    principal: str
    action: str
    resource: str
    context: Mapping[str, str]


def is_allowed(policy: dict[str, Any], call: Call, refs: Mapping[str, str]) -> bool:
    """A statement allows the call, and none denies it. ``refs`` are the template's."""
    effects = {
        statement["Effect"] for statement in policy["Statement"] if _applies(statement, call, refs)
    }
    return effects == {"Allow"}


def _applies(statement: dict[str, Any], call: Call, refs: Mapping[str, str]) -> bool:
    known = {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}
    assert statement.keys() <= known, "this evaluation does not know all of the statement"
    principal = statement["Principal"]
    everybody = principal in ("*", {"AWS": "*"})
    assert everybody or principal.keys() == {"Service"}, "this evaluation knows services alone"
    return (
        (everybody or call.principal in _values(principal["Service"], refs))
        and any(fnmatchcase(call.action, one) for one in _values(statement["Action"], refs))
        and any(fnmatchcase(call.resource, one) for one in _values(statement["Resource"], refs))
        and all(
            _holds(operator, call.context.get(key), _values(wanted, refs))
            for operator, conditions in statement.get("Condition", {}).items()
            for key, wanted in conditions.items()
        )
    )


def _holds(operator: str, found: str | None, wanted: list[str]) -> bool:
    if found is None:
        return False
    if operator in {"StringEquals", "Bool"}:
        return found in wanted
    if operator in {"ArnLike", "StringLike"}:
        return any(fnmatchcase(found, one) for one in wanted)
    raise AssertionError(f"this evaluation does not know {operator}")


def _values(value: Any, refs: Mapping[str, str]) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [refs[one["Ref"]] if isinstance(one, dict) else one for one in values]

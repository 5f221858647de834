"""CloudFormation's intrinsic functions, evaluated against what has been created so far.

Reference: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
A function that our templates do not use, or use in another form, is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3commit.local.errors import UnsupportedTemplateError


@dataclass(frozen=True, slots=True)
class Created:
    """What a created resource answers: its `Ref` and its attributes for `Fn::GetAtt`."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Resolver:
    """Resolves the values of one stack. ``created`` and ``exports`` grow during loading."""

    stack: str
    account: str
    region: str
    template: Mapping[str, Any]
    exports: dict[str, str]
    created: dict[str, Created] = field(default_factory=dict)

    def resolve(self, value: Any) -> Any:
        """``value`` with every intrinsic replaced. Raises `UnsupportedTemplateError`."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name, argument)
        return {key: self.resolve(item) for key, item in value.items()}

    def substitute(self, text: str) -> str:
        """`Fn::Sub` of ``text``, which names pseudo parameters only."""
        return re.sub(r"\$\{([^}]*)\}", lambda found: self._pseudo(found[1]), text)

    def _call(self, name: str, argument: Any) -> Any:
        match name, argument:
            case "Ref", str():
                return (
                    self.created[argument].ref
                    if argument in self.created
                    else self._pseudo(argument)
                )
            case "Fn::GetAtt", [str() as logical_id, str() as attribute]:
                return self._attribute(logical_id, attribute)
            case "Fn::Join", [str() as separator, items]:
                return separator.join(str(item) for item in self.resolve(items))
            case "Fn::Select", [int() as index, items]:
                return self.resolve(items)[index]
            case "Fn::Split", [str() as separator, text]:
                return str(self.resolve(text)).split(separator)
            case "Fn::Sub", str():
                return self.substitute(argument)
            case "Fn::ImportValue", str():
                if argument in self.exports:
                    return self.exports[argument]
                raise self._error(f"Fn::ImportValue {argument}: no stack exports it")
        raise self._error(f"the intrinsic function {name} of {argument!r} is not known here")

    def _pseudo(self, name: str) -> str:
        known = {
            "AWS::AccountId": self.account,
            "AWS::Region": self.region,
            "AWS::Partition": "aws",
        }
        if name not in known:
            raise self._error(f"Ref {name} names nothing that exists")
        return known[name]

    def _attribute(self, name: str, attribute: str) -> str:
        if name not in self.created:
            raise self._error(f"Fn::GetAtt {name}.{attribute} names nothing that exists")
        attributes = self.created[name].attributes
        if attribute not in attributes:
            kind = self.template["Resources"][name]["Type"]
            raise self._error(f"{kind} {name} has no attribute {attribute} here")
        return attributes[attribute]

    def _error(self, what: str) -> UnsupportedTemplateError:
        return UnsupportedTemplateError(f"stack {self.stack}: {what}")


def references(value: Any) -> Iterator[str]:
    """Every name that ``value`` refers to by Ref or GetAtt, for the order of creation."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref" and isinstance(item, str):
                yield item
            elif key == "Fn::GetAtt":
                yield item[0]
            else:
                yield from references(item)

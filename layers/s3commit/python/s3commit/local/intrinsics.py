"""CloudFormation's intrinsic functions, evaluated against what has been created so far.

Reference: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
An intrinsic that is not known is an error that names it; nothing is guessed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3commit.local.errors import UnsupportedTemplateError

NO_VALUE = object()  # what `Ref: AWS::NoValue` leaves behind; its property is dropped
_PLACEHOLDER = re.compile(r"\$\{(!?)([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Created:
    """What a created resource answers: its `Ref` and its attributes for `Fn::GetAtt`."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Resolver:
    """Resolves the values of one stack. ``created`` and ``exports`` grow as loading goes on."""

    stack: str
    account: str
    region: str
    template: Mapping[str, Any]
    exports: dict[str, str]
    created: dict[str, Created] = field(default_factory=dict)

    def resolve(self, value: Any) -> Any:
        """``value`` with every intrinsic replaced. Raises `UnsupportedTemplateError`."""
        if isinstance(value, list):
            return [item for item in map(self.resolve, value) if item is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name in _FUNCTIONS:
                return _FUNCTIONS[name](self, argument)
            if name.startswith("Fn::"):
                raise self._error(f"the intrinsic function {name} is not known here")
        resolved = {key: self.resolve(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not NO_VALUE}

    def condition(self, name: str) -> bool:
        """Whether the template's condition ``name`` holds."""
        conditions = self.template.get("Conditions", {})
        if name not in conditions:
            raise self._error(f"the condition {name} is not defined")
        return self._truth(conditions[name])

    def _truth(self, expression: Any) -> bool:
        if not isinstance(expression, dict) or len(expression) != 1:
            raise self._error(f"{expression!r} is no condition")
        name, argument = next(iter(expression.items()))
        match name:
            case "Condition":
                return self.condition(argument)
            case "Fn::Equals":
                left, right = argument
                return bool(self.resolve(left) == self.resolve(right))
            case "Fn::Not":
                return not self._truth(argument[0])
            case "Fn::And":
                return all(self._truth(item) for item in argument)
            case "Fn::Or":
                return any(self._truth(item) for item in argument)
            case _:
                raise self._error(f"the condition function {name} is not known here")

    def ref(self, name: str) -> Any:
        """The value of `Ref: name`."""
        pseudo = {
            "AWS::AccountId": self.account,
            "AWS::Region": self.region,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": self.stack,
            "AWS::StackId": f"arn:aws:cloudformation:{self.region}:{self.account}:stack/"
            f"{self.stack}/local",
            "AWS::NoValue": NO_VALUE,
        }
        if name in pseudo:
            return pseudo[name]
        if name in self.created:
            return self.created[name].ref
        parameter = self.template.get("Parameters", {}).get(name)
        if parameter is None:
            raise self._error(f"Ref {name} names nothing that exists")
        if "Default" not in parameter or str(parameter["Type"]).startswith("AWS::SSM"):
            raise self._error(f"the parameter {name} has no value of its own")
        return parameter["Default"]

    def attribute(self, name: str, attribute: str) -> str:
        """The value of `Fn::GetAtt: [name, attribute]`."""
        if name not in self.created:
            raise self._error(f"Fn::GetAtt {name}.{attribute} names nothing that exists")
        attributes = self.created[name].attributes
        if attribute not in attributes:
            kind = self.template["Resources"][name]["Type"]
            raise self._error(f"{kind} {name} has no attribute {attribute} here")
        return attributes[attribute]

    def substitute(self, text: str, variables: Mapping[str, Any]) -> str:
        """`Fn::Sub` of ``text``; ``variables`` are resolved values."""

        def replacement(found: re.Match[str]) -> str:
            literal, name = found.groups()
            if literal:
                return "${" + name + "}"
            if name in variables:
                return str(variables[name])
            if "." in name:
                return self.attribute(*name.split(".", 1))
            return str(self.ref(name))

        return _PLACEHOLDER.sub(replacement, text)

    def _error(self, what: str) -> UnsupportedTemplateError:
        return UnsupportedTemplateError(f"stack {self.stack}: {what}")

    def _sub(self, argument: Any) -> str:
        if isinstance(argument, str):
            return self.substitute(argument, {})
        text, variables = argument
        return self.substitute(text, self.resolve(variables))

    def _get_att(self, argument: Any) -> str:
        name, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.attribute(name, attribute)

    def _if(self, argument: Any) -> Any:
        name, then, otherwise = argument
        return self.resolve(then if self.condition(name) else otherwise)

    def _import(self, argument: Any) -> str:
        name = self.resolve(argument)
        if name not in self.exports:
            raise self._error(f"Fn::ImportValue {name}: no stack exports it")
        return self.exports[name]

    def _find_in_map(self, argument: Any) -> Any:
        name, first, second = self.resolve(argument)
        try:
            return self.template["Mappings"][name][first][second]
        except KeyError as error:
            raise self._error(f"Fn::FindInMap {name}.{first}.{second} is not there") from error

    def _select(self, argument: Any) -> Any:
        index, items = argument
        return self.resolve(items)[int(self.resolve(index))]


_FUNCTIONS: dict[str, Callable[[Resolver, Any], Any]] = {
    "Ref": lambda r, a: r.ref(a),
    "Fn::GetAtt": lambda r, a: r._get_att(a),
    "Fn::Join": lambda r, a: str(a[0]).join(str(item) for item in r.resolve(a[1])),
    "Fn::Sub": lambda r, a: r._sub(a),
    "Fn::Select": lambda r, a: r._select(a),
    "Fn::Split": lambda r, a: str(r.resolve(a[1])).split(a[0]),
    "Fn::ImportValue": lambda r, a: r._import(a),
    "Fn::If": lambda r, a: r._if(a),
    "Fn::FindInMap": lambda r, a: r._find_in_map(a),
    "Fn::Base64": lambda r, a: base64.b64encode(str(r.resolve(a)).encode()).decode(),
}


def references(value: Any) -> Iterator[str]:
    """Every name that ``value`` refers to by Ref, GetAtt or Sub; for the order of creation."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref" and isinstance(item, str):
                yield item
            elif key == "Fn::GetAtt":
                yield item.split(".", 1)[0] if isinstance(item, str) else item[0]
            elif key == "Fn::Sub":
                text = item if isinstance(item, str) else item[0]
                yield from (
                    name.split(".", 1)[0] for bang, name in _PLACEHOLDER.findall(text) if not bang
                )
                yield from references(item)
            else:
                yield from references(item)

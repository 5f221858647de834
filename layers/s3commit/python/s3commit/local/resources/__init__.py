"""What the loader knows of a resource type, and what it gives to the functions that create one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from s3commit.local import UnsupportedTemplateError

Properties = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Created:
    """What a created resource answers: its `Ref` and its attributes for `Fn::GetAtt`."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a resource stands: its stack and its logical id."""

    stack: str
    logical_id: str

    def name(self, limit: int) -> str:
        """A physical name of at most ``limit`` characters, the same in every run."""
        name = f"{self.stack}-{self.logical_id}"
        if len(name) > limit:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            name = f"{name[: limit - 9]}-{digest}"
        return name


@dataclass(slots=True)
class Context:
    """The moto server as the loader sees it."""

    account: str
    region: str
    client: Callable[[str], Any]
    bucket_names: Mapping[Place, str] = field(default_factory=dict)


Create = Callable[[Context, Place, Properties], Created]


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A CloudFormation type: what is applied, and what is left to AWS and why.

    A property that is in neither table is refused, and `create` gets those that are applied.
    ``check`` looks at nested properties before anything is created; it raises
    `UnsupportedTemplateError`. ``left`` says why nothing of the type is made here, whatever its
    properties are.
    """

    create: Create
    applies: frozenset[str]
    leaves: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Properties], object] | None = None
    left: str = ""

    def refused(self, properties: Properties) -> list[str]:
        """The names of the properties that are in neither table."""
        return [] if self.left else sorted(set(properties) - self.applies - set(self.leaves))


def left_to_aws(why: str) -> ResourceType:
    """A type of which nothing is made; to refer to one gives its name."""
    return ResourceType(lambda _, place, __: Created(place.name(255)), frozenset(), left=why)


def pick(value: Mapping[str, Any], names: Mapping[str, str], where: str) -> dict[str, Any]:
    """``value`` with its keys renamed by ``names``.

    Raises `UnsupportedTemplateError` for a key that ``names`` does not have.
    """
    unknown = sorted(set(value) - set(names))
    if unknown:
        raise UnsupportedTemplateError(f"{where}.{unknown[0]} is not known here")
    return {names[key]: item for key, item in value.items()}


def same(*names: str) -> dict[str, str]:
    """A renaming that changes nothing, for `pick`."""
    return {name: name for name in names}


def without(properties: Properties, *names: str) -> dict[str, Any]:
    """The properties but ``names``: those that the API takes as they are."""
    return {name: value for name, value in properties.items() if name not in names}


def tag_map(properties: Properties) -> dict[str, str]:
    """The template's tags, Key → Value."""
    return {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])}

"""The resource types that the loader knows, and the functions that create them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s3commit.local.assembly import Stack

Properties = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Created:
    """The answers of a created resource: its `Ref` and its attributes for `Fn::GetAtt`."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a resource: its stack and its logical id."""

    stack: Stack
    logical_id: str

    def name(self, limit: int) -> str:
        """A physical name of at most ``limit`` characters, the same in every run."""
        name = f"{self.stack.name}-{self.logical_id}"
        if len(name) > limit:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            name = f"{name[: limit - 9]}-{digest}"
        return name


@dataclass(frozen=True, slots=True)
class Context:
    """The moto server as the loader sees it, and a directory for the functions' code."""

    client: Callable[[str], Any]
    directory: Path


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A CloudFormation type: what is applied, and what is left to AWS.

    Both name properties, with blanks, ``Outer.Inner`` if not all of ``Outer`` is known; one that is
    in neither is refused, and ``create`` gets those that are applied. ``check`` looks at values
    before anything is created, as they are in the template; it raises `UnsupportedTemplateError`.
    """

    create: Callable[[Context, Place, Properties], Created]
    applies: str
    leaves: str = ""
    check: Callable[[Stack, Properties], None] = lambda *_: None

    def refused(self, properties: Properties) -> list[str]:
        """The names of the properties that are not known."""
        known = {*self.applies.split(), *self.leaves.split(), "Tags"}
        return sorted(set(_unknown(properties, known)))

    def applied(self, properties: Properties) -> dict[str, Any]:
        """The properties that are applied."""
        outer = {name.partition(".")[0] for name in self.applies.split()}
        return {name: value for name, value in properties.items() if name in outer}


def _unknown(properties: Properties, known: set[str], within: str = "") -> Iterator[str]:
    for name, value in properties.items():
        path = within + name
        if any(each.startswith(f"{path}.") for each in known):
            for inner in value if isinstance(value, list) else [value]:
                yield from _unknown(inner, known, f"{path}.")
        elif path not in known:
            yield path


def without(properties: Properties, *names: str) -> dict[str, Any]:
    """The properties but ``names``: those that the API takes as they are."""
    return {name: value for name, value in properties.items() if name not in names}

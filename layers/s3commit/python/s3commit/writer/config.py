"""The choice by destination: a file that says how jobs are written to which bucket or prefix.

Hadoop's per-bucket options and its dynamic committer factory are the model. The file is TOML::

    [default]
    threads = 8

    ["s3://lake"]
    encryption = "aws:kms"

    ["s3://lake/daily/"]
    upload = "stage"
    conflict = "replace"
    conditions.minRows = 1

For each option alone: what the program says goes first, then the longest section that the
destination lies in, then shorter ones, then ``[default]``, then the code's own default. A section
is a directory: ``s3://lake/data1`` says nothing of ``s3://lake/data10/``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.writer.options import (
    KNOWN,
    OF_ENCRYPTION,
    check_option,
    conditions_of,
    encryption_of,
)

ENVIRONMENT_VARIABLE: Final = "S3COMMIT_CONFIG"
DEFAULT_SECTION: Final = "default"


@dataclass(frozen=True, slots=True)
class Section:
    """One section: where it holds, and its options.

    ``bucket`` empty: everywhere. ``prefix`` empty: in the whole bucket; else it ends with ``/``.
    """

    bucket: str
    prefix: str
    options: Mapping[str, str]

    def holds_for(self, destination: Destination) -> bool:
        """Whether the destination lies in the section's directory, or is it."""
        return not self.bucket or (
            self.bucket == destination.bucket and destination.prefix.startswith(self.prefix)
        )

    @property
    def weight(self) -> tuple[bool, int]:
        """Of two sections that hold, the heavier one wins."""
        return bool(self.bucket), len(self.prefix)


@dataclass(frozen=True, slots=True)
class Config:
    """The sections of a file. ``source`` is its path; empty: there is no file."""

    sections: tuple[Section, ...] = ()
    source: str = ""

    def settings_for(self, destination: Destination) -> Mapping[str, str]:
        """The options of a job there, in the Spark format's names; pure.

        Only what a section says is in it; the code's own defaults are not.
        """
        found: dict[str, str] = {}
        for section in sorted(self.sections, key=lambda section: section.weight):
            if section.holds_for(destination):
                if "encryption" in section.options:  # another algorithm takes other keys
                    found = {name: found[name] for name in found.keys() - OF_ENCRYPTION}
                found.update(section.options)
        return found


def load_config(path: str | os.PathLike[str] | None = None) -> Config:
    """The configuration in the file at ``path``, or in the one that S3COMMIT_CONFIG names.

    Without either it is empty. Raises `InvalidInputError` (``BAD_CONFIG``) in one line that names
    the file, the section and the key.
    """
    chosen = os.fspath(path) if path is not None else os.environ.get(ENVIRONMENT_VARIABLE, "")
    if not chosen:
        return Config()
    try:
        text = Path(chosen).read_bytes().decode()
    except OSError as error:
        raise _refused(chosen, f"it can not be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refused(chosen, f"it is not UTF-8: {error.reason}") from error
    return parse_config(text, source=chosen)


def parse_config(text: str, *, source: str) -> Config:
    """The configuration in ``text``; see `load_config`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(source, f"it is not TOML: {error}") from error
    sections: dict[tuple[str, str], Section] = {}
    for name, content in document.items():
        section = _section(source, name, content)
        place = (section.bucket, section.prefix)
        if place in sections:
            raise _refused(source, f"section [{name!r}] stands there twice")
        sections[place] = section
    config = Config(tuple(sections.values()), source)
    _check_together(config)
    return config


def _section(source: str, name: str, content: Any) -> Section:
    if not isinstance(content, dict):
        raise _refused(source, f"{name!r} stands outside of any section: put it under [default]")
    bucket, prefix = _place(source, name)
    return Section(bucket, prefix, _options(source, name, content))


def _place(source: str, name: str) -> tuple[str, str]:
    if name == DEFAULT_SECTION:
        return "", ""
    scheme, _, rest = name.partition("://")
    bucket, _, prefix = rest.partition("/")
    try:
        # a whole bucket is no destination, but it has sections
        found = parse_destination(f"{scheme}://{bucket}/{prefix.removesuffix('/') or 'any'}/")
    except InvalidInputError as error:
        wanted = 'name it [default], ["s3://bucket"] or ["s3://bucket/prefix/"]'
        raise _refused(source, f"section [{name!r}]: {wanted}") from error
    return found.bucket, found.prefix if prefix else ""


def _options(source: str, section: str, content: dict[str, Any]) -> dict[str, str]:
    options = {}
    for key, value in _flat(content):
        try:
            options[key] = check_option(key, _text(value))
        except InvalidInputError as error:
            why = error.message
            if error.code != "UNKNOWN_OPTION":
                why += f"; known options: {', '.join(KNOWN)}"
            raise _refused(source, f"section [{section!r}]: {why}") from error
    return options


def _flat(table: dict[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """``conditions.minRows = 1`` is a table in TOML, and one option here."""
    flat = []
    for key, value in table.items():
        name = above + key
        nested = isinstance(value, dict) and name.split(".")[0] == "conditions"
        flat += _flat(value, f"{name}.") if nested else [(name, value)]
    return flat


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidInputError(
        f"a value must be a text, a number or true or false, not {type(value).__name__}",
        code="BAD_OPTION",
    )


def _check_together(config: Config) -> None:
    """What only makes sense together is judged as a destination in the section would get it."""
    for section in config.sections:
        place = Destination(section.bucket, section.prefix)
        try:
            found = config.settings_for(place)
            encryption_of(found)
            conditions_of(found)
        except InvalidInputError as error:
            name = place.uri if section.bucket else DEFAULT_SECTION
            raise _refused(config.source, f"section [{name!r}]: {error.message}") from error


def _refused(source: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"config file {source}: {why}", code="BAD_CONFIG")

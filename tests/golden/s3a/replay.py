"""Puts a recorded case of S3A's into any object store: see README.md beside this.

Objects get the bytes that Hadoop wrote, uploads the parts that it sent. One thing is another: an
upload's id is the store's to give, so the recorded ids in the bytes are replaced by the new ones.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s3commit.core.formats.layout import JobDirectory, is_data, parse_directory
from s3commit.core.ports.objects import ObjectStore

HERE = Path(__file__).parent
BUCKET = "lake"
TABLE = "sales/"
_UPLOAD = re.compile(rb'"destinationKey"\s*:\s*"([^"]+)"')
_UPLOAD_ID = re.compile(rb'"uploadId"\s*:\s*"([^"]+)"')


@dataclass
class Recorded:
    """A case as it was recorded.

    ``objects`` are bodies and ``uploads`` parts (None: none was sent) by key; ``ids`` the recorded
    upload ids by key.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, bytes | None] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def manifests(self) -> dict[str, bytes]:
        """The pendingsets, by key."""
        return {key: body for key, body in self.objects.items() if key.endswith(".pendingset")}

    @property
    def directory(self) -> JobDirectory:
        (directory,) = {parse_directory(BUCKET, key) for key in self.manifests}
        return directory

    @property
    def files(self) -> dict[str, bytes]:
        """What the pendingsets would make visible, by key; and what is."""
        named = {key for body in self.manifests.values() for key in _keys(body)}
        whole = {**self.uploads, **self.visible}
        return {key: body for key in sorted(named) if (body := whole[key]) is not None}

    @property
    def visible(self) -> dict[str, bytes]:
        """The data that the driver had made visible already."""
        return {key: body for key, body in self.objects.items() if is_data(key[len(TABLE) :])}


def read(case: str) -> Recorded:
    folder = HERE / case
    listing: Any = json.loads((folder / "listing.json").read_text())
    recorded = Recorded()
    for found in listing["objects"]:
        file = folder / "objects" / found["key"]
        recorded.objects[found["key"]] = file.read_bytes() if found["length"] else b""
    for found in listing["uploads"]:
        part = found["part"]
        recorded.uploads[found["key"]] = (folder / part["file"]).read_bytes() if part else None
        recorded.ids[found["key"]] = found["uploadId"]
    for body in recorded.manifests.values():
        recorded.ids.update(zip(_keys(body), _ids(body), strict=True))
    return recorded


def replay(store: ObjectStore, recorded: Recorded) -> None:
    ids = {}
    for key, part in {**recorded.uploads, **recorded.visible}.items():
        ids[key] = store.create_upload(BUCKET, key, metadata={}, content_type="")
        if part is not None:
            etag = store.upload_part(BUCKET, key, ids[key], 1, part)
            if key in recorded.visible:
                store.complete_upload(BUCKET, key, ids[key], [etag], length=len(part))
    for key, body in recorded.objects.items():
        if key not in recorded.visible:
            store.put(BUCKET, key, renewed(body, recorded, ids))


def renewed(body: bytes, recorded: Recorded, ids: dict[str, str]) -> bytes:
    """The bytes with the recorded upload ids replaced by the new ones: nothing else is touched."""
    for key, old in recorded.ids.items():
        body = body.replace(old.encode(), ids[key].encode())
    return body


def _keys(body: bytes) -> list[str]:
    return [json.loads(b'"' + found + b'"') for found in _UPLOAD.findall(body)]


def _ids(body: bytes) -> list[str]:
    return [found.decode() for found in _UPLOAD_ID.findall(body)]

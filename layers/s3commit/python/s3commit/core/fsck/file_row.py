"""What a row of the files' truth table is, and the sets of words that its rows are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3commit.core.fsck.words import Named, Standing, Thing, Upload, Verdict

Combination = tuple[Standing, Named, Upload, Thing]

LISTED: Final = frozenset({Named.LISTED})
UNLISTED: Final = frozenset(Named) - LISTED
VISIBLE: Final = frozenset({Standing.UNRECORDED, Standing.PUBLISHING, Standing.COMMITTED})
UNDONE: Final = frozenset({Standing.ABORTED, Standing.ROLLED_BACK})
ENDED: Final = UNDONE | {Standing.COMMITTED}
OPEN: Final = frozenset({Upload.OPEN})
NONE: Final = frozenset({Upload.NONE})
OURS: Final = frozenset({Thing.OURS})
NOTHING: Final = frozenset({Thing.ABSENT, Thing.REPLACED})


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row: the combinations that it is about, and what it says of them."""

    verdict: Verdict
    standing: frozenset[Standing] = frozenset(Standing)
    named: frozenset[Named] = frozenset(Named)
    upload: frozenset[Upload] = frozenset(Upload)
    thing: frozenset[Thing] = frozenset(Thing)

    def fits(self, combination: Combination) -> bool:
        """Whether the row is about the combination."""
        standing, named, upload, thing = combination
        return (
            standing in self.standing
            and named in self.named
            and upload in self.upload
            and thing in self.thing
        )


def one(standing: Standing) -> frozenset[Standing]:
    """The set of this standing alone."""
    return frozenset({standing})

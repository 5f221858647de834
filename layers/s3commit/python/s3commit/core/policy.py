"""The numbers of the protocol, each with its reason."""

from __future__ import annotations

from typing import Final

# Completions that one worker has under way. With 40 workers, the most that a deployment may have
# (stacks/config.py), 320 are in flight; S3 takes 100 to 200 ms for one, so that is 1,600 to 3,200 a
# second, and S3 takes 3,500 writes a second below a prefix that it has not split:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
COMPLETE_WORKERS: Final = 8

# A unit is one worker call: four rounds of COMPLETE_WORKERS, about half a second. Long enough to
# pay for the call, short enough to retry, and small enough that a hundred files have four workers.
UNIT_FILES: Final = 32

# The results of all units travel through the state machine as one array of about 45 bytes each,
# and Step Functions carries at most 256 KiB. Larger jobs get larger units instead of more.
MAX_UNITS: Final = 4_000

# Completing a file of many parts takes S3 longer, so parts weigh in too.
UNIT_PARTS: Final = 20_000

# AcquireDestination gives up after so many waits of the state machine (5 s each: one hour).
MAX_WAITS: Final = 720

# Rounds of "abort, look again" before an undo step calls it a transient failure and is retried.
ABORT_ROUNDS: Final = 5

# Attempts to put the marker against other jobs that put theirs at the same moment.
MARKER_ROUNDS: Final = 20

# One PUT up to here; above, the commit manifest goes up in parts, so that memory stays constant.
PUT_BYTES: Final = 8 * 1024 * 1024

# All locks of a job are taken in one transaction and checked in the decision's, and DynamoDB takes
# 100 items in one. A job that needs more for its partitions locks the whole destination instead.
MAX_LOCKS: Final = 98
MAX_PARTITION_LOCKS: Final = 90
MAX_LOCATIONS: Final = 80  # of partitions outside the destination, and room for what they lie in

# A waiting job asks every 5 s, and is noted as seen now and then. One that has not been seen for so
# long keeps nobody waiting any more.
WAITER_SECONDS: Final = 60
WAITER_REFRESH_SECONDS: Final = 20

# A job that holds all its locks is decided within two Lambda calls of at most 15 minutes. One that
# is SEALED and was not written for so long has lost its execution: its locks are taken from it.
HOLDER_SECONDS: Final = 2_400

# Attempts to change locks against other jobs that change them at the same moment.
LOCK_ROUNDS: Final = 50

# A page of a replace list: one GET, and five DeleteObjects calls of 1,000 keys.
REPLACED_PAGE: Final = 5_000

# Objects that one DeleteObjects call names, at most:
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
DELETE_AT_ONCE: Final = 1_000

# RemoveReplaced hands over to another call after that. S3 takes 3,500 deletes a second below a
# prefix, so five million files take 24 minutes, and Lambda gives a call 15. What is under way when
# the time is over, some 130,000 files, takes less than another minute.
REMOVE_SECONDS: Final = 600

"""The numbers of the protocol, each with its reason."""

from typing import Final

# Completions that one worker has under way. With 40 workers, the most that a deployment may have
# (stacks/config.py), 320 are in flight; S3 takes 100 to 200 ms for one, so that is 1,600 to 3,200 a
# second, and S3 takes 3,500 writes a second below a prefix that it has not split:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
COMPLETE_WORKERS: Final = 8

# A unit is one worker call: two rounds of COMPLETE_WORKERS at least, so that a small job is done in
# half a second; 32 at most, about five seconds. Up to 10,240 files a job has no more units than it
# may have workers, so that each works once and no Map Run is needed, which takes a second. A unit
# is billed as a state transition, besides its call, so larger units are cheaper. But a unit is what
# waits for others where many jobs want more than there is.
SMALLEST_UNIT: Final = 16
UNIT_FILES: Final = 256
UNITS_OF_A_JOB: Final = 40  # as long as each may be small enough; `aws.env.MOST_WORKERS`

# The results of all units travel through the state machine as one array of about 45 bytes each,
# and Step Functions carries at most 256 KiB: the units of MAX_JOB_FILES have room.
MAX_UNITS: Final = 4_000

# Files of a page of the plan, in one unit or several. A page costs a PUT, a listing and two GETs
# before the job ends, and each of its units reads all of it, in milliseconds.
PAGE_FILES: Final = 256

# Files of a small job: several steps run in one call, which keeps all keys, 10 MB at the most.
FEW_FILES: Final = 10_000


def are_few(files: int) -> bool:
    """True for the files of a small job."""
    return files <= FEW_FILES


# Files whose keys are looked at one by one before the decision, at worst with a HEAD each, half a
# minute of a processor. For a job of more, all of its destination is listed.
FILES_LOOKED_AT: Final = 20_000

# Completing a file of many parts takes S3 longer, so parts weigh in too.
UNIT_PARTS: Final = 20_000

# Files of one job. VerifyManifests holds about 250 bytes of each, and its function has the memory;
# to complete them takes ten minutes.
MAX_JOB_FILES: Final = 1_000_000

# The most that an undo reads before its decision, in one call: lists of other jobs, a request of 4
# ms of a processor each; lines of these, 11 microseconds each; and files, of which it holds about
# 500 bytes each: its job's, what comes back, copies, and where others have replaced. Clients can
# write such lists, so past these an undo is refused.
MAX_LISTS: Final = 100_000
MAX_LINES: Final = 10 * MAX_JOB_FILES
MAX_HELD: Final = 3 * MAX_JOB_FILES

# Bytes of one job: the largest number that a record may have. A manifest may claim any length, and
# a record with a larger sum could be written to the ledger, but never read again.
MAX_TOTAL_BYTES: Final = 2**63 - 1

# A job that waits for its destination asks again after 5 s at first, then after a fifth of the time
# that it has waited: each time costs three transitions of the state machine. After ten minutes it
# locks its whole destination in place of partitions, so that others can't go before it for ever.
# After an hour it is aborted.
SHORTEST_WAIT: Final = 5
LONGEST_WAIT: Final = 60
WHOLE_AFTER_SECONDS: Final = 600
MAX_WAIT_SECONDS: Final = 3_600

# A state that is entered again until others let it end, as ABORTING is while tasks open uploads,
# waits from SHORTEST_WAIT up to this, and never longer than a twelfth of what it has waited so far.
# A standard execution fails at 25,000 events of its history:
# https://docs.aws.amazon.com/step-functions/latest/dg/bp-history-limit.html. In its 24 hours these
# are about 200 rounds of at most 82 events, each retry counted (tests/stacks/test_history.py).
LONGEST_ROUND_WAIT: Final = 600
WAITED_SHARE: Final = 12

# A waiting job notes this often that it is alive: it may hold locks while it waits for those below.
WAITER_REFRESH_SECONDS: Final = 20

# Jobs that a waiting job names, in its record and to its client.
MAX_NAMED: Final = 5

# An overwrite that was requested before so many days, and is not decided, is aborted: the ledger
# has forgotten what was committed since. Decision records, by which an empty one learns it again,
# stay longer (`retentionDays`, stacks/config.py).
TURN_DAYS: Final = 7
FORGOTTEN_DAYS: Final = TURN_DAYS + 1

# Earlier overwrites that meet a job and of which it asks, before it locks, whether their executions
# live: it waits for the first that does. So many are hardly ever lost, and Step
# Functions has a quota of such calls.
TURNS_LOOKED_AT: Final = 50

# Those of which it reads the record and the partitions, to see whether they meet it: a minute.
TURNS_READ: Final = 1_000

# Two clocks differ by so much at most (A7, in docs/proof.md): of S3's hosts, which put times on
# objects and uploads in whole seconds; of the functions, and of DynamoDB's times to live. AWS's
# hosts keep theirs within a second, and promise none of it to customers.
S3_CLOCKS: Final = 5
FUNCTION_CLOCKS: Final = 600

# How long an append stays listed when it has ended: for two of the longest calls. A job that
# replaces asks which ones are under way, lists the objects at its destination, and asks again,
# within one call; and the call that ends an append may stall between the time that it notes and its
# write.
APPEND_SECONDS: Final = 1_800

# Appends below one node that a job which replaces reads, some megabytes, and how often it reads
# them until two readings agree.
MAX_APPENDS: Final = 100_000
APPEND_READINGS: Final = 20

# A completion that is denied, by a policy that is being changed or lasts, is tried again so
# often, after a pause (seconds) that doubles, before its job is rolled back: a bit over a minute.
DENIED_LOOKS: Final = 3
DENIED_PAUSE: Final = 10

# Characters that say why a file is lost: in the results of all units together, but so many in each
# at least, for the code, and at most. `MAX_UNITS` results have room for it.
WORDS_OF_A_JOB: Final = 60_000
SHORTEST_WORDS: Final = 16
LONGEST_WORDS: Final = 400

# No execution lives longer (stacks/definition.py): a COMMITTING job that was not written for so
# long has none, and needs no worker until one is started.
EXECUTION_HOURS: Final = 24

# No function runs for longer: https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
LONGEST_CALL: Final = 900  # seconds

# Rounds of "abort, look again" before an undo step calls it a transient failure and is retried.
ABORT_ROUNDS: Final = 5

# Attempts to put the marker against other jobs that put theirs at the same moment, and seconds of
# the first pause between them, which doubles up to the longest: together half a minute.
MARKER_ROUNDS: Final = 20
MARKER_PAUSE: Final = 0.05
LONGEST_MARKER_PAUSE: Final = 2.0

# One PUT up to here; above, the commit manifest goes up in parts, so that memory stays constant.
PUT_BYTES: Final = 8 * 1024 * 1024

# Items of one transaction:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_ITEMS: Final = 100

# Partitions that a job locks one by one, up to a kilobyte of its record each. A job of more locks
# its whole destination.
MAX_NODES: Final = 90

# A node is a sort key; DynamoDB takes 1,024 bytes:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_NODE_BYTES: Final = 960

# A job that holds its locks is decided within two of the longest calls, unless they die of time or
# memory again and again. One that is SEALED and was
# not written for so long has lost its execution: its locks are removed.
HOLDER_SECONDS: Final = 2 * LONGEST_CALL + FUNCTION_CLOCKS

# A job waits for an hour at most, and is decided soon after. One that has had its locks for so long
# and is SEALED still fails again and again, however often it is started: they are removed as well.
LOCKED_SECONDS: Final = 3 * 3_600

# Objects that one DeleteObjects call names, at most; a page of a replace list has as many:
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
DELETE_AT_ONCE: Final = 1_000

# A call of a step, or of the sweep, hands over to another one after that; Lambda gives it 900. S3
# takes 3,500 deletes a second below a prefix, so to remove five million files takes 24 minutes; and
# an abort is 4 ms of a processor, so to abort a million uploads takes over an hour. Work that is
# under way when the time is over takes less than two minutes.
CALL_SECONDS: Final = 600

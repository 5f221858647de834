"""Deliberate bugs in reading what others may have put."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

DOCUMENTS = "tests/core/test_documents.py"
CHECK = "tests/core/test_check.py"
RESCUE = "tests/cli/test_rescue.py"
UNREADABLE = "tests/cli/test_unreadable.py"

MUTANTS = [
    Mutant(
        "a list is believed wherever it lies",
        "core/formats/documents.py",
        "    if (header.job_id, header.destination) != "
        "(directory.job_id, directory.destination.uri):\n",
        "    if False:\n",
        by=DOCUMENTS,
    ),
    Mutant(
        "a list may name files of others",
        "core/formats/documents.py",
        "        check_contained(file.key, directory)\n",
        "        pass\n",
        by=DOCUMENTS,
    ),
    Mutant(
        "a hint counts whatever key the list has",
        "core/job/idempotency_key.py",
        "job if job and read_commit_header(store, job).idempotency_key == key else None",
        "job if job and read_commit_header(store, job) else None",
        by="tests/spark/test_earlier.py",
    ),
    Mutant(
        "a job that replaces a partition explains all that is gone",
        "core/job/history.py",
        "        if self.header.scope is Scope.DIRECTORY:\n",
        "        if True:\n",
        by=CHECK,
    ),
    Mutant(
        "a file that S3 does not show ends the check",
        "core/check.py",
        "    except NOT_READABLE as error:\n        mend = ",
        "    except ZeroDivisionError as error:\n        mend = ",
        by=CHECK,
    ),
    Mutant(
        "a document that can not be read ends the command",
        "cli/job.py",
        "        except NOT_READABLE as error:\n",
        "        except ZeroDivisionError as error:\n",
        by=UNREADABLE,
    ),
    Mutant(
        "an id that a stranger has chosen makes uploads those of S3A",
        "cli/s3a.py",
        "        return owner is not None and any(",
        "        return owner not in {None, job.job_id} and any(",
        by=RESCUE,
    ),
    Mutant(
        "the uploads of a write are S3A's whosever name they have",
        "cli/s3a.py",
        " and not is_pipelines(one.key))",
        ")",
        by=RESCUE,
    ),
]

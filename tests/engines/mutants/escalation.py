"""Deliberate bugs in what holds an adversary (I12), and in reading what others may have put."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

ANSWERS = "tests/crash/test_any_answer.py"
RESCUE = "tests/cli/test_rescue.py"

MUTANTS = [
    Mutant(
        "names of ours are accepted as destinations",
        "core/formats/layout.py",
        "one in _NO_NAMES or one in _RESERVED or one",
        "one in _NO_NAMES or one",
        by="adversary",
    ),
    Mutant(
        "a list in _commits/ passes for a decision",
        "core/jobs/healing.py",
        "        state=JobState.ABORTED,\n",
        "        state=JobState.PUBLISHING,\n",
        by="adversary",
    ),
    Mutant(
        "an id is a job's own, whatever a directory above has",
        "core/jobs/ownership.py",
        "            of_outer = has_owner_above(ports, directory)\n",
        "            of_outer = False\n",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "a name proves an upload where there is no _job.json",
        "core/jobs/ownership.py",
        "    if not opened_at:\n",
        "    if False:\n",
        by="adversary",
    ),
    # Nothing fails for good behind the decision.
    Mutant(
        "a marker that others remove keeps a job from its end",
        "core/commit/publish_success.py",
        "    # Whoever writes over it, or removes it, all the time",
        "    raise PreconditionError(directory.success)\n    # Whoever all the time",
        by=ANSWERS,
    ),
    # What others may have put is not taken for readable.
    Mutant(
        "the parts of an upload are taken for listable",
        "core/jobs/ownership.py",
        "    except (AccessError, InvalidInputError):\n",
        "    except ArithmeticError:\n",
        by=ANSWERS,
    ),
    Mutant(
        "a list is believed at any place",
        "core/documents/commit_manifest.py",
        "    if (header.job_id, header.destination) != "
        "(directory.job_id, directory.destination.uri):\n",
        "    if False:\n",
        by="tests/core/test_documents.py",
    ),
    Mutant(
        "a document that can not be read ends the command",
        "cli/job_facts.py",
        "        except NOT_READABLE as error:\n",
        "        except ZeroDivisionError as error:\n",
        by="tests/cli/test_unreadable.py",
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

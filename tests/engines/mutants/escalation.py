"""Deliberate bugs in what holds an adversary (I12): caught by the simulation with one."""

from __future__ import annotations

from tests.engines.mutants.mutant import Mutant

ANSWERS = "tests/crash/test_any_answer.py"
ENCRYPTED = "tests/crash/test_encrypted.py"
LARGEST = "tests/core/test_largest.py"

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
        "core/job/decision_record.py",
        "        state=JobState.ABORTED,\n",
        "        state=JobState.PUBLISHING,\n",
        by="adversary",
    ),
    Mutant(
        "an id is a job's own, whatever a directory above has",
        "core/job/uploads.py",
        "            of_outer = is_further_up(ports, directory)\n",
        "            of_outer = False\n",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "an older upload is the job's",
        "core/job/uploads.py",
        " or is_older(upload, opened_at):",
        ":",
        by="tests/core/test_no_escalation.py",
    ),
    Mutant(
        "a name proves an upload where there is no _job.json",
        "core/job/uploads.py",
        "    if not opened_at:\n",
        "    if False:\n",
        by="adversary",
    ),
    # The sweep.
    Mutant(
        "a sweep holds all that clients have written",
        "core/sweep/sweep.py",
        "map(_small, _in_time(self, found, self.list_until))",
        "_in_time(self, found, self.list_until)",
        by="tests/core/test_sweep_bounds.py",
    ),
    Mutant(
        "a listing may take all of a question's time",
        "core/sweep/sweep.py",
        "(number - 0.5) * share",
        "number * share",
        by="tests/core/test_sweep_bounds.py",
    ),
    Mutant(
        "a listing that is cut short begins with the oldest each time",
        "core/sweep/sweep.py",
        "10 ** (7 * int(self.lot(state)[:8], 16) / 16**8)",
        "10**7",
        by="tests/core/test_sweep_bounds.py",
    ),
    Mutant(
        "an upload that is drawn by lot is not looked at",
        "core/sweep/questions.py",
        "        yield from islice(chain(here, ",
        "        yield from islice(chain(iter(()), ",
        by="tests/core/test_sweep_bounds.py",
    ),
    # A pipeline that rested wakes up.
    Mutant(
        "the machine tries again what is final",
        "stacks/retries.py",
        "return [never, retry(",
        "return [retry(",
        by="tests/stacks/test_retries.py",
    ),
    Mutant(
        "the machine gives up before a function is awake",
        "stacks/retries.py",
        "RETRIES = unless_final(first=2, attempts=12, longest=60)",
        "RETRIES = unless_final(first=2, attempts=4, longest=60)",
        by="tests/stacks/test_retries.py",
    ),
    # Nothing fails for good behind the decision.
    Mutant(
        "commas in the names of locks count as values of a decision",
        "core/job/decision_record.py",
        "    most=MAX_DECISION_BYTES,\n",
        "",
        by=LARGEST,
        also=(
            ("core/commit/decide_commit.py", "    refuse_unfit(record, ports.clock.now())\n", ""),
        ),
    ),
    Mutant(
        "nobody looks whether the documents of a job fit before it is decided",
        "core/commit/decide_commit.py",
        "    refuse_unfit(record, ports.clock.now())\n",
        "",
        by=LARGEST,
    ),
    Mutant(
        "a list may be longer than anybody reads",
        "core/commit/verify_manifests.py",
        " or listed > MAX_COMMITS_BYTES:",
        ":",
        by=LARGEST,
    ),
    Mutant(
        "a marker that others remove keeps a job from its end",
        "core/commit/publish_success.py",
        "    # Whoever writes over it, or removes it, all the time",
        "    raise PreconditionError(directory.success)\n    # Whoever all the time",
        by=ANSWERS,
    ),
    # What others may have put is not taken for readable.
    Mutant(
        "a roll back takes a file for readable",
        "core/commit/roll_back.py",
        "    except (AccessError, InvalidInputError):  # it can't",
        "    except AccessError:  # it can't",
        by=ENCRYPTED,
    ),
    Mutant(
        "the parts of an upload are taken for listable",
        "core/job/uploads.py",
        "    except (AccessError, InvalidInputError):\n",
        "    except ArithmeticError:\n",
        by=ANSWERS,
    ),
    Mutant(
        "the look after a refused delete is a HEAD",
        "aws/s3.py",
        "            if listed_at(self, bucket, key) is not None:\n",
        "            if self.head(bucket, key) is not None:\n",
        by="tests/aws/test_s3_deletes.py",
    ),
    Mutant(
        "a marker is taken for readable",
        "core/commit/publish_success.py",
        "    except (InvalidInputError, AccessError):\n",
        "    except AccessError:\n",
        by=ENCRYPTED,
    ),
]

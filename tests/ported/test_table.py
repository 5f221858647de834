"""docs/ported.md names each of the field's tests, and each test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PAGE = (ROOT / "docs" / "ported.md").read_text()

# The field's names, suite by suite, as Hadoop's trunk has them.
FIELD = {
    "AbstractITCommitProtocol": """
        testRecoveryAndCleanup testCommitLifecycle testCommitWithStorageClassConfig
        testCommitterWithDuplicatedCommit testTwoTaskAttemptsCommit testCommitterWithFailure
        testCommitterWithNoOutputs testMapFileOutputCommitter testAbortTaskNoWorkDone
        testAbortJobNoWorkDone testCommitJobButNotTask testAbortTaskThenJob testFailAbort
        testAbortJobNotTask testConcurrentCommitTaskWithSubDir testOutputFormatIntegration
        testAMWorkflow testParallelJobsToAdjacentPaths testParallelJobsToSameDestination
        testSelfGeneratedUUID testRequirePropagatedUUID testS3ACommitterFactoryBinding
        testCommittersPathsHaveUUID""",
    "ITestCommitOperations": """
        testCreateTrackerNormalPath testCreateTrackerMagicPath testCreateAbortEmptyFile
        testCommitEmptyFile testCommitSmallFile testAbortNonexistentDir testCommitterFactoryDefault
        testCommitterFactorySchema testBaseRelativePath testMarkerFileRename testUploadEmptyFile
        testUploadSmallFile testUploadMissingFile testRevertCommit testRevertMissingCommit
        testFailuresInAbortListing testWriteNormalStream testBulkCommitFiles""",
    "ITestCommitOperationCost, ITestUploadRecovery": """
        testMagicMkdirs testCostOfCreatingMagicFile testCostOfSavingLoadingPendingFile
        testPutRecovery testMagicWriteRecovery testCommitOperations""",
    "TestStagingCommitter": """
        testUUIDPropagation testUUIDValidation testUUIDLoadOrdering testJobIDIsUUID
        testSelfGeneratedUUID testAttemptPathConstructionNoSchema
        testAttemptPathsDifferentByTaskAttempt testAttemptPathConstructionWithSchema
        testAttemptPathConstructionWrongSchema testCommitPathConstruction testSingleTaskCommit
        testSingleTaskEmptyFileCommit testSingleTaskMultiFileCommit testTaskInitializeFailure
        testTaskSingleFileUploadFailure testTaskMultiFileUploadFailure
        testTaskUploadAndAbortFailure testSingleTaskAbort testJobCommit testJobCommitFailure
        testJobAbort""",
    "The directory and partitioned staging suites": """
        testBadConflictMode testDefaultConflictResolution testFailConflictResolution
        testAppendConflictResolution testReplaceConflictResolution testDefault testFail testAppend
        testReplace testDefaultFailAndAppend testReplaceWithDeleteFailure testTaskOutputListing
        testTaskOutputListingWithHiddenFiles testPartitionsResolution testUUIDPart
        testUUIDPartSuffix testUUIDDottedPath testUUIDPartUUID testUUIDParentUUID testUUIDDir
        testUUIDEmptyDir testEmptyUUID""",
    "AbstractContractMultipartUploaderTest": """
        testSingleUpload testMultipartUpload testMultipartUploadEmptyPart testUploadEmptyBlock
        testMultipartUploadReverseOrder testMultipartUploadReverseOrderNonContiguousPartNumbers
        testMultipartUploadAbort testAbortUnknownUpload testAbortEmptyUpload
        testAbortAllPendingUploads testAbortEmptyUploadHandle testCompleteEmptyUpload
        testPutPartEmptyUploadID testCompleteEmptyUploadID testDirectoryInTheWay
        testConcurrentUploads""",
}


def sections() -> dict[str, str]:
    """The page's sections by their titles."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def named_tests() -> list[tuple[Path, str]]:
    """Each test that the page names: its file, and its function (empty: the file as a whole)."""
    found = []
    for body in sections().values():
        home = re.search(r"In `(tests/ported/\w+\.py)`", body)
        for row in re.findall(r"^\| .+\|$", body, flags=re.MULTILINE):
            for name in re.findall(r"`([^`]+)`", row.rstrip("| ").rpartition("|")[2]):
                path, _, function = name.rpartition("::")
                if name.endswith(".py"):
                    path, function = name, ""
                elif not path:
                    assert home is not None, f"{name}: in which file?"
                    path = home[1]
                found.append((ROOT / path, function))
    return found


@cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("suite", FIELD)
def test_each_of_the_fields_tests_has_a_row(suite: str) -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", sections()[suite], flags=re.MULTILINE)
    names = {name for first, _ in rows for name in re.findall(r"test\w+", first)}
    assert set(FIELD[suite].split()) <= names
    for first, verdict in rows[1:]:
        if not first.startswith("---"):
            assert re.match(r"passes|differs|does not apply", verdict), first


def test_each_test_that_the_table_names_exists() -> None:
    named = named_tests()
    assert len(named) > 100
    for path, function in named:
        assert path.exists(), path
        assert not function or function in functions_of(path), f"{path}::{function}"


def test_each_ported_test_is_in_the_table() -> None:
    named = {function for path, function in named_tests() if path.parent == HERE}
    for path in sorted(HERE.glob("test_*.py")):
        if path.name != Path(__file__).name:
            tests = {name for name in functions_of(path) if name.startswith("test_")}
            assert tests <= named, path.name

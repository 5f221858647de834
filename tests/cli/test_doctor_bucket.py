"""What `s3commit doctor` says of a bucket and of a catalog that is told of commits."""

import json
from typing import Any

import pytest

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from s3commit.cli.bucket_checks import supported
from s3commit.cli.deployment import Deployment
from s3commit.core.documents.bucket_owner import OWNER
from s3commit.core.documents.catalog_note import CATALOG_NOTE, CatalogNote
from tests.cli.account import Account, aborting
from tests.cli.support import JOB, TABLE, Desk
from tests.conftest import REGION
from tests.core.world import BUCKET
from tests.lake import IGNORED_ETAGS

KEY = "arn:aws:kms:us-east-1:123456789012:key/1"
LEDGERS = f"arn:aws:dynamodb:{REGION}:123456789012:table"


def test_a_bucket_that_is_not_there_is_said(account: Account) -> None:
    assert "does not exist" in account.finding("notifications", bucket="nobodys-lake")[1]


@pytest.mark.parametrize("given", [None, ["orders/", "sales/"]])
@pytest.mark.parametrize("prefix", ["", "sales", "sales/eu/", "sales-2/"])
def test_prefixes_that_are_served(account: Account, given: list[str] | None, prefix: str) -> None:
    account.deploy(env.STORAGE_STACK, Parameters=json.dumps({"prefixes": given} if given else {}))
    verdict, text = account.finding("prefixes", prefix=prefix)
    if given and prefix == "sales-2/":
        assert verdict == "fix"
        assert "serves orders/, sales/ alone, so a job at sales-2/ would be refused" in text
    else:
        assert (verdict, text) == (
            "ok",
            f"the pipeline serves {', '.join(given or ['the whole bucket'])}",
        )


@pytest.mark.parametrize(("event_bridge", "verdict"), [(True, "skipped"), (False, "fix")])
def test_without_a_stack_it_says_so(account: Account, event_bridge: bool, verdict: str) -> None:
    bucket = account.make_bucket(event_bridge=event_bridge)
    account.refuse("DescribeStacks")
    found = account.finding("notifications", bucket=bucket)
    assert found[0] == verdict
    assert ("was not looked at" in found[1]) is event_bridge


@pytest.mark.parametrize("operation", ["GetQueueUrl", "DescribeRule"])
def test_a_queue_or_rule_that_may_not_be_seen_is_said(account: Account, operation: str) -> None:
    bucket = account.make_bucket(event_bridge=True)
    account.deploy(env.STORAGE_STACK, **account.listen("rule"))
    account.client("events").put_rule(Name="rule", ScheduleExpression="rate(1 hour)")
    account.refuse(operation)
    verdict, text = account.finding("notifications", bucket=bucket)
    assert (verdict, "manifests; not looked at: looking at " in text) == ("ok", True)


def test_a_bucket_of_another_deployment_is_not_to_be_imported(account: Account) -> None:
    bucket = account.make_bucket(*SUFFIXES)
    verdict, text = account.finding("notifications", bucket=bucket)
    assert verdict == "fix"
    assert f"notifies {account.queue} as a deployment of s3commit does, and a bucket has" in text


@pytest.mark.parametrize(
    ("suffixes", "overlap"),
    [
        ([], False),
        (["/a.json", ".parquet"], False),
        ([""], True),  # without a filter, as most are
        ([".json"], True),
        (["/x/_job.json"], True),
    ],
)
def test_what_overlaps_an_import(account: Account, suffixes: list[str], overlap: bool) -> None:
    bucket = account.make_bucket(*suffixes)
    verdict, text = account.finding("notifications", bucket=bucket)
    if overlap:
        assert verdict == "fix"
        assert f"has notifications to arn:aws:sqs:{REGION}:123456789012:{bucket} that" in text
        assert "deploy with -c s3commit:events=eventbridge" in text
    else:
        assert verdict == "ok"
        assert text.endswith(f"deploy with -c s3commit:importBucket={bucket}")


def test_a_bucket_that_is_not_supported_is_said(account: Account) -> None:
    bucket = account.make_bucket()
    assert account.finding("bucket", bucket=bucket)[0] == "ok"
    around = Deployment("eu-north-1", account.connect, bucket=bucket)
    assert f"is in {REGION}, and S3 notifies queues of its own" in supported(around).text
    account.owner = "999999999999"
    verdict, text = account.finding("bucket", bucket=bucket)
    assert (verdict, "is not of account 123456789012" in text) == ("fix", True)
    account.refuse("HeadBucket")  # without any right nothing is known
    assert account.finding("bucket", bucket=bucket)[0] == "skipped"


@pytest.mark.parametrize("code", ["NotImplemented", "501", "MethodNotAllowed", "405"])
@pytest.mark.parametrize("is_aws", [False, True])
def test_a_store_of_others_may_lack_a_setting(account: Account, code: str, is_aws: bool) -> None:
    bucket = account.make_bucket()
    for lacking in ("GetObjectLockConfiguration", "GetBucketEncryption", "GetBucketPolicy"):
        account.refuse(lacking, code)
    if is_aws:
        account.connect("s3").meta._endpoint_url = "https://s3.amazonaws.com"
    found = account.ask(bucket=bucket)
    verdicts = {found[check][0] for check in ("bucket", "encryption", "bucket policy")}
    assert verdicts == {"fix" if is_aws else "ok"}


def test_an_empty_region_of_a_bucket_is_the_one_that_was_asked(account: Account) -> None:
    account.answers["HeadBucket"] = {"BucketRegion": ""}
    verdict, text = account.finding("bucket", bucket=account.make_bucket())
    assert (verdict, f" is in {REGION}, of this account" in text) == ("ok", True), text


@pytest.mark.parametrize("rule", [None, {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}])
def test_a_default_retention_is_said(account: Account, rule: dict[str, Any] | None) -> None:
    bucket = account.make_bucket()
    lock = {"ObjectLockEnabled": "Enabled", **({"Rule": rule} if rule else {})}
    account.answers["GetObjectLockConfiguration"] = {"ObjectLockConfiguration": lock}
    verdict, text = account.finding("bucket", bucket=bucket)
    assert (verdict, "has Object Lock with a default" in text) == (
        "fix" if rule else "ok",
        bool(rule),
    )


@pytest.mark.parametrize(
    ("key", "given", "verdict"),
    [
        (None, {}, "ok"),  # SSE-S3
        ("", {}, "ok"),  # of KMS, the key that AWS manages: it admits who may use the bucket
        ("arn:aws:kms:us-east-1:123456789012:alias/aws/s3", {}, "ok"),
        (KEY, {}, "fix"),
        ("1", {}, "fix"),
        (KEY, {"encryption": "AES256"}, "fix"),  # the jobs' files have the bucket's key
        (KEY, {"kmsKeyArn": KEY}, "ok"),
        ("key/1", {"kmsKeyArn": KEY}, "ok"),
        (KEY, {"kmsKeyArn": f"{KEY}2"}, "fix"),
        (KEY, {"jobKeyArns": [KEY]}, "fix"),  # the pipeline's documents have the bucket's key
        (KEY, {"jobKeyArns": [f"{KEY}2", KEY], "encryption": "AES256"}, "ok"),
        ("arn:aws:kms:us-east-1:123456789012:alias/lake", {"kmsKeyArn": KEY}, "skipped"),
    ],
)
@pytest.mark.parametrize("algorithm", ["aws:kms", "aws:kms:dsse"])
def test_a_key_that_the_pipeline_may_not_use_is_said(
    account: Account, algorithm: str, key: str | None, given: dict[str, Any], verdict: str
) -> None:
    bucket, s3 = account.make_bucket(*SUFFIXES), account.client("s3")
    account.deploy(env.STORAGE_STACK, Parameters=json.dumps(given))
    if key is not None:
        default = {"SSEAlgorithm": algorithm, **({"KMSMasterKeyID": key} if key else {})}
        rules = [{"ApplyServerSideEncryptionByDefault": default}]
        s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})
    assert account.finding("encryption", bucket=bucket)[0] == verdict


@pytest.mark.parametrize(
    ("ledger", "body", "verdict", "says"),
    [
        (None, "", "ok", "has no owner yet"),
        ("table/ledger", "", "ok", "belongs to this deployment"),
        ("table/other", "", "fix", f"ledger {LEDGERS}/other, and a bucket has one: use that one"),
        (None, "{", "fix", "_s3commit/_owner.json, which names the bucket's owner, was changed"),
    ],
)
def test_whose_the_bucket_is_is_said(
    account: Account, ledger: str | None, body: str, verdict: str, says: str
) -> None:
    bucket = account.make_bucket()
    account.deploy(env.STORAGE_STACK, **{env.TABLE_OUTPUT: "ledger", env.BUCKET_OUTPUT: bucket})
    if ledger or body:
        named = f"{LEDGERS.removesuffix('table')}{ledger}"
        document = json.dumps({"version": 1, "bucket": bucket, "ledger": named})
        account.client("s3").put_object(Bucket=bucket, Key=OWNER, Body=body or document)
    found = account.finding("owner")
    assert (found[0], says in found[1]) == (verdict, True), found


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([], "aborts incomplete uploads: add one, with more days than your longest job runs"),
        ([aborting(1), aborting(7)], "aborts uploads after 1 day: a job that runs longer loses"),
        ([{**aborting(7), "Status": "Disabled"}], "add one"),
        ([{**aborting(7), "Filter": {"Prefix": "logs/"}}], "has no lifecycle rule for all keys"),
    ],
)
def test_uploads_that_nobody_aborts_or_that_are_aborted_too_early_are_said(
    deployed: Account, rules: list[dict[str, Any]], says: str
) -> None:
    s3 = deployed.client("s3")
    s3.delete_bucket_lifecycle(Bucket=deployed.name)
    if rules:
        s3.put_bucket_lifecycle_configuration(
            Bucket=deployed.name, LifecycleConfiguration={"Rules": rules}
        )
    verdict, text = deployed.finding("lifecycle")
    assert verdict == "fix"
    assert says in text


def expiring(place: str, **how: Any) -> dict[str, Any]:
    filters = {"Filter": how.pop("filters", {"Prefix": place})}
    return {"ID": "expire", "Status": "Enabled", **filters, "Expiration": how or {"Days": 400}}


def moving(place: str, to: str, days: int) -> dict[str, Any]:
    moves = [{"StorageClass": "STANDARD_IA", "Days": 30}, {"StorageClass": to, "Days": days}]
    rule = {**expiring(place), "ID": "move", "Transitions": moves}
    return {name: one for name, one in rule.items() if name != "Expiration"}


TAGGED = {"Tag": {"Key": "k", "Value": "v"}}
LARGE = {"ObjectSizeGreaterThan": 16 * 1024}  # no note of a key is larger
LARGE_OURS = {"And": {"Prefix": "_s3commit/", **LARGE}}


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (expiring(""), "expire of bucket {} deletes _s3commit/ too: a program with an old"),
        (expiring("_s3"), "deletes _s3commit/ too"),
        (expiring("", Date="2026-01-01T00:00:00Z"), "deletes _s3commit/ too"),
        (expiring("", filters=TAGGED), ""),
        (expiring("", filters={"And": {"Prefix": "", "Tags": [TAGGED["Tag"]]}}), ""),
        (expiring("", ExpiredObjectDeleteMarker=True), ""),
        ({**expiring(""), "Status": "Disabled"}, ""),
        (expiring("", filters=LARGE), ""),
        (expiring("", filters=LARGE_OURS), ""),
        (expiring("", filters={"ObjectSizeGreaterThan": 1024}), "deletes _s3commit/ too"),
        (expiring("", Days=30, filters=LARGE), "deletes what has 30 days or less"),
        (expiring("", Days=30, filters=LARGE_OURS), "deletes what has 30 days or less"),
        (expiring("sales/"), ""),
        (expiring("sales/", Days=30), "deletes what has 30 days or less"),
        (expiring("sales/eu/", Days=1), ""),  # a table is not where the rule is
        (expiring("logs/", Days=1), ""),
        (moving("", "GLACIER", 30), "move of bucket {} archives what has 30 days or less"),
        (moving("_s3commit/", "DEEP_ARCHIVE", 1), "archives what has 30 days or less"),
        (moving("", "GLACIER", 31), ""),
        (moving("", "GLACIER_IR", 1), ""),
        ({**moving("", "GLACIER", 40), "Expiration": {"Days": 50}}, "deletes _s3commit/ too"),
        (moving("logs/", "GLACIER", 1), ""),
        ({**aborting(1), "Filter": {"Prefix": "logs/"}}, ""),
        ({**aborting(1), "Filter": {"Prefix": "sales/eu/"}}, "aborts uploads after 1 day"),
    ],
)
@pytest.mark.parametrize("said", ["prefix", "prefixes"])
def test_a_rule_that_takes_what_jobs_need_is_said(
    account: Account, said: str, rule: dict[str, Any], says: str
) -> None:
    bucket = account.make_bucket(*SUFFIXES)
    parameters = json.dumps({"prefixes": ["sales/"]} if said == "prefixes" else {})
    account.deploy(env.STORAGE_STACK, Parameters=parameters)
    account.answers["GetBucketLifecycleConfiguration"] = {"Rules": [aborting(7), rule]}
    more = {"prefix": "sales/"} if said == "prefix" else {}
    verdict, text = account.finding("lifecycle", bucket=bucket, **more)
    assert (verdict, says.format(bucket) in text) == ("fix" if says else "ok", True), text


def test_the_prefixes_of_a_deployment_are_enough_too(account: Account) -> None:
    bucket = account.make_bucket(*SUFFIXES)
    account.deploy(env.STORAGE_STACK, Parameters=json.dumps({"prefixes": ["a/", "sales/"]}))
    rules = [{**aborting(7), "Filter": {"Prefix": one}} for one in ("a/", "sales/")]
    for here, verdict in ((rules, "ok"), (rules[:1], "fix"), ([aborting(3)], "ok")):
        account.answers["GetBucketLifecycleConfiguration"] = {"Rules": here}
        assert account.finding("lifecycle", bucket=bucket)[0] == verdict


def test_a_rule_for_the_tables_alone_is_enough_for_them(deployed: Account) -> None:
    deployed.client("s3").put_bucket_lifecycle_configuration(
        Bucket=deployed.name,
        LifecycleConfiguration={"Rules": [{**aborting(7), "Filter": {"Prefix": "sales/"}}]},
    )
    assert deployed.finding("lifecycle", prefix="sales/eu/")[0] == "ok"
    assert deployed.finding("lifecycle", prefix="returns/")[0] == "fix"


ROLE = "arn:aws:iam::123456789012:role/S3CommitPipeline/catalog"


@pytest.mark.parametrize(
    ("location", "path", "lacking", "told"),
    [
        ("s3://{}/sales", "dt=2026-11-26/hour=7/part-0", "", ""),
        ("s3a://{}/sales/", "notes/part-0", "", ""),
        ("s3://{}/other/", "", "", "is at s3://{}/other/, but the parameter catalogs says"),
        (None, "", "", "(EntityNotFoundException): create it, or correct the parameter"),
        ("s3://{}/sales/", "dt=2026-11-26/x", "", "is not a partition of table {}.sales, whose"),
        ("s3://{}/sales/", "dt=1/hour=7/a=1/part-0", "", "partition columns are dt, hour: write"),
        ("s3://{}/sales/", "", "glue:GetPartitions", f"{ROLE} lacks glue:GetPartitions: deploy"),
        ("s3://{}/sales/", "", "everything", "no function notifies table {}.sales: deploy"),
    ],
)
def test_a_table_is_compared_with_the_parameter_the_paths_and_the_rights(
    account: Account, location: str | None, path: str, lacking: str, told: str
) -> None:
    bucket, glue = account.make_bucket(), account.client("glue")
    account.lacking = {lacking}
    parameters = json.dumps({"catalogs": [f"sales/={bucket}.sales dropEmpty"]})
    account.deploy(env.STORAGE_STACK, BucketName=bucket, Parameters=parameters)
    role = {env.CATALOG_ROLE_OUTPUT: ROLE} if lacking != "everything" else {"Version": "1"}
    account.deploy(env.PIPELINE_STACK, **role)
    glue.create_database(DatabaseInput={"Name": bucket})
    if location:
        keys = [{"Name": "dt", "Type": "date"}, {"Name": "hour", "Type": "int"}]
        storage = {"Location": location.format(bucket)}
        table = {"Name": "sales", "PartitionKeys": keys, "StorageDescriptor": storage}
        glue.create_table(DatabaseName=bucket, TableInput=table)
    account.client("s3").put_object(Bucket=bucket, Key=f"sales/{path or 'x'}", Body=b"1")
    verdict, text = account.finding("catalogs")
    assert (verdict, told.format(bucket) in text) == ("fix" if told else "ok", True), text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        (CATALOG_NOTE.encode(CatalogNote("lake.sales")), "died. It is tried again; after five"),
        (CATALOG_NOTE.encode(CatalogNote("t", "no: \x1b[31m\n\xff")), "no: \\x1b[31m\\n\xff. It"),
        (b"no JSON", "_catalog.json can't be read: "),
    ],
)
def test_a_note_is_one_line_without_control_characters(desk: Desk, note: bytes, shown: str) -> None:
    desk.world.store.put(BUCKET, desk.committed_job(JOB).catalog, note)
    assert shown in desk.run("show", JOB, "--table", TABLE).stdout


@pytest.mark.parametrize("ignored", IGNORED_ETAGS)
def test_i5_a_store_that_ignores_etags_of_deletes_is_said(deployed: Account, ignored: str) -> None:
    deployed.ignored = ignored
    verdict, text = deployed.finding("deletes", prefix="sales/")
    assert verdict == ("fix" if ignored else "ok")
    assert (("ignores the etag" in text) and ("REPLACE_NOT_ALLOWED" in text)) == bool(ignored)
    assert deployed.left() == (0, 0)

"""Wait for a table: the function of an Airflow ``PythonSensor``.

A rule of EventBridge sends the table's commits to an SQS queue of the waiting DAG's own::

    PythonSensor(task_id="sales_are_there", python_callable=is_committed, mode="reschedule",
                 op_kwargs={"queue": QUEUE_URL, "table": "s3://lake/sales/"})

Rights: ``sqs:ReceiveMessage`` and ``sqs:DeleteMessage`` on the queue.
"""

import json

import boto3


def is_committed(queue: str, table: str) -> bool:
    """Whether a commit of the table was announced since the last call that said so.

    All messages that are there are taken, so that several commits release one run. Each sensor
    needs a queue of its own. A worker that dies between the delete and the answer loses a commit.
    """
    sqs = boto3.client("sqs")
    found = False
    while messages := sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1
    ).get("Messages"):
        for message in messages:
            detail = json.loads(message["Body"])["detail"]
            found |= detail["table"] == table and detail["outcome"] == "COMMITTED"
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return found

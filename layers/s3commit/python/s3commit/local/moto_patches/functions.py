"""Lambda, what wakes it, and what watches it: queues lose nothing, a schedule has a rate."""

import threading
from typing import Any

from moto.awslambda.models import LambdaBackend, LambdaFunction
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.events.models import Rule
from moto.iam.responses import IamResponse
from moto.sqs.models import Queue, SQSBackend, sqs_backends
from moto.sqs.responses import SQSResponse

from s3commit.local.moto_patches.registry import Patcher, one_at_a_time, patch
from s3commit.local.worker import THROTTLED


@patch
def lambda_runs_here(patcher: Patcher) -> None:
    """Invoke calls the function's code and waits, whatever the type of the call is.

    AWS: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html (TooManyRequestsException is
    a 429). moto: needs Docker, and starts a container for each call. Every caller inside moto ends
    here.
    """

    class TooManyRequestsError(JsonRESTError):
        code = 429

    def invoke(self: Any, body: Any, _headers: Any, response_headers: Any) -> Any:
        payload = body if isinstance(body, bytes) else (body or "{}").encode()
        outcome = patcher.host.invoke(self, payload or b"{}")
        if outcome is THROTTLED:
            raise TooManyRequestsError("TooManyRequestsException", "Rate Exceeded.")
        if outcome.failed:
            response_headers["x-amz-function-error"] = "Unhandled"
        return outcome.payload

    patcher.replace(LambdaFunction, "invoke", invoke)


@patch
def sqs_mapping_polls(patcher: Patcher) -> None:
    """An event source mapping polls its queue until it is deleted, or while it is enabled.

    In batches, with partial failures and redelivery.

    AWS: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html. moto: runs the function inside
    SendMessage, a record at a time, and deletes the records that the function reported as failed.
    """

    def create_event_source_mapping(original: Any, self: Any, spec: dict[str, Any]) -> Any:
        mapping = original(self, spec)
        for queue in sqs_backends[self.account_id][self.region_name].queues.values():
            if queue.queue_arn == mapping.event_source_arn:
                queue.lambda_event_source_mappings.pop(mapping.function_arn, None)
        patcher.host.add_mapping(mapping)
        return mapping

    def delete_event_source_mapping(original: Any, self: Any, uuid: str) -> Any:
        mapping = original(self, uuid)
        if mapping is not None:
            patcher.host.remove_mapping(mapping)
        return mapping

    patcher.wrap(LambdaBackend, "create_event_source_mapping", create_event_source_mapping)
    patcher.wrap(LambdaBackend, "delete_event_source_mapping", delete_event_source_mapping)


@patch
def sqs_one_at_a_time(patcher: Patcher) -> None:
    """A message that was sent stays until it is deleted, and one receiver has it at a time.

    AWS: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
    sqs-visibility-timeout.html. moto: a delete rebuilds the list of messages without a lock, so
    that a message sent at that moment is lost, and two receivers may take one message. No receiver
    waits for a message here (WaitTimeSeconds): none of ours asks to.
    """
    lock = threading.RLock()

    def receive_message(
        original: Any, self: Any, name: str, count: int, _wait: int | None, *more: Any
    ) -> Any:
        with lock:  # it is everyone's: no thread waits with it
            return original(self, name, count, 0, *more)

    patcher.wrap(Queue, "add_message", one_at_a_time(lock))
    patcher.wrap(Queue, "delete_message", one_at_a_time(lock))
    patcher.wrap(SQSBackend, "change_message_visibility", one_at_a_time(lock))
    patcher.wrap(SQSBackend, "receive_message", receive_message)


@patch
def sqs_redrives(patcher: Patcher) -> None:
    """StartMessageMoveTask gives a dead-letter queue's messages back to the queue they came from.

    AWS: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/
    API_StartMessageMoveTask.html; they are new messages there, with a new id
    (SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html). moto: has no such call. Here
    it is over when it answers.
    """

    def start_message_move_task(self: Any) -> Any:
        queues, arn = self.sqs_backend, self._get_param("SourceArn")
        dead = queues.get_queue(arn.split(":")[-1])
        (source,) = queues.list_dead_letter_source_queues(dead.name)
        for message in dead.messages:
            queues.send_message(source.name, message.body)
            dead._messages.remove(message)
        return ActionResult({"TaskHandle": arn})

    patcher.replace(SQSResponse, "start_message_move_task", start_message_move_task)


@patch
def alarms_are_evaluated(patcher: Patcher) -> None:
    """An alarm's state is that of its metric.

    AWS: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html. moto:
    it stays as it was made, or set. Here it is evaluated when someone describes alarms.
    """

    def describe_alarms(original: Any, self: Any) -> Any:
        patcher.host.metrics.evaluate(self.cloudwatch_backend)
        return original(self)

    patcher.wrap(CloudWatchResponse, "describe_alarms", describe_alarms)


@patch
def roles_may_do_all(patcher: Patcher) -> None:
    """SimulatePrincipalPolicy says what a role may do.

    AWS: https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html. moto:
    has no such call. Here rights are not checked, so each action is allowed.
    """

    def simulate_principal_policy(self: Any) -> Any:
        names = self._get_param("ActionNames")
        found = [{"EvalActionName": name, "EvalDecision": "allowed"} for name in names]
        return ActionResult({"EvaluationResults": found, "IsTruncated": False})

    patcher.replace(IamResponse, "simulate_principal_policy", simulate_principal_policy)


@patch
def scheduled_rules_match_no_event(patcher: Patcher) -> None:
    """A rule with a schedule and no pattern matches no event.

    AWS: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-rule-schedule.html.
    moto: no pattern matches every event, and PutEvents, which a machine calls at the end of each
    job, would call the sweep.
    """

    def send_to_targets(original: Any, self: Any, *call: Any, **named: Any) -> None:
        if self.event_pattern.get_pattern():
            original(self, *call, **named)

    patcher.wrap(Rule, "send_to_targets", send_to_targets)

"""Lambda: functions that really run."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

from typing import Any

from s3commit.local.moto_patches.registry import Patcher, patch


@patch
def lambda_runs_here(patcher: Patcher) -> None:
    """Invoke calls the function's code and waits. Event and DryRun calls are refused.

    AWS: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html. moto: needs Docker, and
    starts a container for each call. Every caller inside moto ends here.
    """
    from moto.awslambda.exceptions import LambdaClientError
    from moto.awslambda.models import LambdaFunction

    host = patcher.host

    def make(_original: Any) -> Any:
        def invoke(self: Any, body: Any, request_headers: Any, response_headers: Any) -> bytes:
            payload = body if isinstance(body, bytes) else (body or "{}").encode()
            kind = request_headers.get("x-amz-invocation-type", "RequestResponse")
            if kind != "RequestResponse":
                code = "InvalidParameterValueException"
                raise LambdaClientError(code, f"the invocation type {kind} is not known here")
            outcome = host.invoke(self, payload or b"{}")
            if outcome.failed:
                response_headers["x-amz-function-error"] = "Unhandled"
            return outcome.payload

        return invoke

    patcher.replace(LambdaFunction, "invoke", make)


@patch
def sqs_mapping_polls(patcher: Patcher) -> None:
    """An event source mapping polls its queue, in batches, with partial failures and redelivery.

    AWS: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html. moto: runs the function inside
    SendMessage, a record at a time, and deletes the records that the function reported as failed.
    """
    from moto.awslambda.models import LambdaBackend
    from moto.sqs.models import sqs_backends

    host = patcher.host

    def make(original: Any) -> Any:
        def create_event_source_mapping(self: Any, spec: dict[str, Any]) -> Any:
            mapping = original(self, spec)
            for queue in sqs_backends[self.account_id][self.region_name].queues.values():
                if queue.queue_arn == mapping.event_source_arn:
                    queue.lambda_event_source_mappings.pop(mapping.function_arn, None)
            host.add_mapping(mapping)
            return mapping

        return create_event_source_mapping

    patcher.replace(LambdaBackend, "create_event_source_mapping", make)

"""Step Functions: failures of a distributed map count, and executions are started once."""

import sys
import threading
import time
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any, cast

from botocore.exceptions import ClientError

from s3commit.local.moto_patches.registry import Patcher, one_at_a_time, patch

_PARSE_SECONDS = 30
_PARSER = "moto.stepfunctions.parser"
_EXCEEDED = "StatesExceedToleratedFailureThreshold"
_MAP = f"{_PARSER}.asl.component.state.exec.state_map.iteration"


@patch
def machines_execute(patcher: Patcher) -> None:
    """A state machine that is started runs.

    AWS: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html.
    moto: has an interpreter, switched off, which calls a fixed port and makes a client for each
    call; here its clients are kept and call this server.
    """
    batch = "moto.batch"
    if batch not in sys.modules:  # one name of it is needed, and it loads EC2: 0.6 s
        sys.modules[batch] = module_from_spec(cast("Any", find_spec(batch)))
        import_module(f"{batch}.utils")
        del sys.modules[batch]
    from moto.stepfunctions import responses
    from moto.stepfunctions.parser import models  # noqa: F401 - loads what is patched below
    from moto.stepfunctions.parser.asl.utils import boto_client

    @cache
    def client_of(service: str) -> Any:
        return patcher.host.client(service, parameter_validation=False, read_timeout=None)

    def client_for(region: str, service: str, state_credentials: Any = None) -> Any:
        del region, state_credentials  # there is one of each here
        return client_of(service)

    settings: Any = vars(responses)["default_user_config"]
    executing = {"stepfunctions": {"execute_state_machine": True}}
    patcher.replace(responses, "default_user_config", settings | executing)
    original = boto_client.boto_client_for
    for name, module in list(sys.modules.items()):
        if name.startswith(_PARSER) and getattr(module, "boto_client_for", None) is original:
            patcher.replace(module, "boto_client_for", client_for)


@patch
def executions_start_once(patcher: Patcher) -> None:
    """Of two starts with one name at most one runs.

    AWS: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
    (same name and input while running: the same execution; else ExecutionAlreadyExists). moto: two
    threads may both start.
    """
    from moto.stepfunctions.parser.models import StepFunctionsParserBackend

    patcher.wrap(StepFunctionsParserBackend, "start_execution", one_at_a_time(threading.Lock()))


@patch
def machines_are_parsed_once(patcher: Patcher) -> None:
    """An execution of a known definition starts without a pause.

    AWS: https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html (StartExecution).
    moto: parses it, and each path in it, again. The grammar's tree is kept here; what moto makes of
    it, and runs, is each execution's own.
    """
    parsing: Any = import_module(f"{_PARSER}.asl.parse.asl_parser")
    paths: Any = import_module(f"{_PARSER}.asl.utils.json_path")
    tree_of = cache(lambda original, definition: original(definition)[1])

    def parse(original: Any, definition: str) -> tuple[Any, Any]:
        tree = tree_of(original, definition)
        return parsing.Preprocessor().visit(tree), tree

    patcher.wrap(parsing.AmazonStateLanguageParser, "parse", parse)
    patcher.replace(paths, "parse", lru_cache(1_000)(paths.parse))


@patch
def executions_can_be_stopped_at_once(patcher: Patcher) -> None:
    """An execution that was started can be stopped from then on.

    AWS: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StopExecution.html.
    moto: a 500, or no effect, until the execution's thread has parsed the definition; here
    StopExecution waits for that.
    """
    from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

    def stop(original: Any, self: Any, **how: Any) -> None:
        deadline = time.monotonic() + _PARSE_SECONDS
        while self.env is None or self.env.program_state() is None:
            if time.monotonic() > deadline:
                raise TimeoutError("the definition is not parsed yet")
            time.sleep(0.01)
        original(self, **how)

    patcher.wrap(ExecutionWorker, "stop", stop)


@patch
def map_run_failures_count(patcher: Patcher) -> None:
    """A distributed map fails when one of its children failed, unless failures are tolerated.

    AWS: https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html
    (States.ExceedToleratedFailureThreshold). moto: the state succeeds, with null for each failure.
    The loader refuses a map that tolerates failures.
    """
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration import (
        distributed_iteration_component as distributed,
    )

    def map_run(original: Any, self: Any, env: Any, eval_input: Any) -> None:
        original(self, env=env, eval_input=eval_input)
        items = eval_input.map_run_record.item_counter
        if items.failed.get() + items.timed_out.get() + items.aborted.get():
            env.stack.pop()
            raise _map_failed(
                env, _EXCEEDED, "The specified tolerated failure threshold was exceeded"
            )

    patcher.wrap(distributed.DistributedIterationComponent, "_map_run", map_run)


@patch
def map_readers_fail_by_name(patcher: Patcher) -> None:
    """A map whose dataset can't be read fails with an error of its own, which can be caught.

    AWS: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
    (States.ItemReaderFailed). moto: States.Runtime, as for a mistake in the definition.
    """
    module: Any = import_module(f"{_MAP.rpartition('.')[0]}.item_reader.eval.resource_eval_s3")

    def eval_resource(original: Any, self: Any, env: Any) -> None:
        try:
            original(self, env=env)
        except ClientError as error:
            raise _map_failed(env, "StatesItemReaderFailed", str(error)) from error

    patcher.wrap(module.ResourceEvalS3, "eval_resource", eval_resource)


def _map_failed(env: Any, kind: str, cause: str) -> Exception:
    """The event that ends a map: ``kind`` is moto's name of the error."""
    from moto.stepfunctions.parser import api
    from moto.stepfunctions.parser.asl.component.common.error_name import (
        failure_event,
        states_error_name,
        states_error_name_type,
    )

    name = states_error_name_type.StatesErrorNameType[kind]
    details = {"error": name.to_name(), "cause": cause}
    event = failure_event.FailureEvent(
        env=env,
        error_name=states_error_name.StatesErrorName(typ=name),
        event_type=api.HistoryEventType.MapRunFailed,
        event_details=cast("Any", {"executionFailedEventDetails": details}),
    )
    return failure_event.FailureEventException(failure_event=event)


@patch
def map_workers_do_not_nest(patcher: Patcher) -> None:
    """A distributed map has any number of items.

    AWS: https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html. moto: a
    worker calls itself for each next item, and dies of RecursionError after some hundred of them;
    the map then never ends.
    """
    module: Any = import_module(f"{_MAP}.itemprocessor.distributed_item_processor_worker")

    def eval_pool(self: Any, job: Any, worker_frame: Any) -> None:
        while job is not None:
            job_frame = worker_frame.open_inner_frame()
            self._eval_job(env=job_frame, job=job)
            worker_frame.delete_frame(job_frame)
            if isinstance(job.job_output, Exception) or self.stopped():
                break
            next_job = self._job_pool.next_job()
            if next_job is None:
                break
            self._job_pool.close_job(job)
            job = next_job
        # The frame goes before the last job: the map continues when all jobs are closed.
        self._env.delete_frame(worker_frame)
        if job is not None:
            self._job_pool.close_job(job)

    patcher.replace(module.DistributedItemProcessorWorker, "_eval_pool", eval_pool)

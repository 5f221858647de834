"""LocalStack's Step Functions, whose tasks are at another server. Runs in LocalStack's packages."""

import sys
from typing import Any

import boto3
from localstack.aws.app import LocalstackAwsGateway
from localstack.aws.serving.werkzeug import serve
from localstack.services.plugins import SERVICE_PLUGINS
from localstack.services.stepfunctions.asl.utils import boto_client


def client_for(service: str, region: str, state_credentials: Any) -> Any:
    """The client of a task there, with LocalStack's settings: one try."""
    settings = boto_client._BOTO_CLIENT_CONFIG
    return boto3.client(service, region_name=region, endpoint_url=sys.argv[2], config=settings)  # type: ignore[call-overload]


boto_client.boto_client_for = client_for  # the states import it with the first request
serve(LocalstackAwsGateway(SERVICE_PLUGINS), "127.0.0.1", int(sys.argv[1]), use_reloader=False)

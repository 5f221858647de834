"""CloudFormation's intrinsic functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from s3commit.local import UnsupportedTemplateError
from s3commit.local.assembly import Stack
from s3commit.local.loader import Loading
from s3commit.local.resources import Context, Created

TEMPLATE = {
    "Parameters": {"Boot": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk"}},
    "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
}


@pytest.fixture
def loading() -> Loading:
    created = {"Queue": Created("url", {"Arn": "arn:q"})}
    context = Context(pytest.fail, Path())  # nothing may be created
    return Loading(Stack("S", TEMPLATE, Path()), context, {"S:Out": "imported"}, created)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::Cidr": []}, "Fn::Cidr"),
        ({"Fn::If": ["Perhaps", 1, 2]}, "Fn::If"),
        ({"Fn::GetAtt": "Queue.Arn"}, "Fn::GetAtt of 'Queue.Arn'"),
        ({"Fn::Sub": ["${A}", {"A": "x"}]}, "Fn::Sub of"),
        ({"Fn::Sub": "${Queue}"}, "Ref Queue"),
        ({"Ref": "Nobody"}, "Ref Nobody"),
        ({"Ref": "AWS::NoValue"}, "Ref AWS::NoValue"),
        ({"Ref": "Boot"}, "Ref Boot"),
        ({"Fn::GetAtt": ["Queue", "Colour"]}, "AWS::SQS::Queue Queue has no attribute Colour"),
        ({"Fn::ImportValue": "Nowhere"}, "Fn::ImportValue of 'Nowhere'"),
    ],
)
def test_what_is_not_known_is_named(loading: Loading, value: Any, message: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match=message):
        loading.resolve(value)

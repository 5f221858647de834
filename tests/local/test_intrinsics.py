"""CloudFormation's intrinsic functions."""

from __future__ import annotations

from typing import Any

import pytest

from s3commit.local.errors import UnsupportedTemplateError
from s3commit.local.intrinsics import Created, Resolver, references

TEMPLATE = {
    "Parameters": {"Boot": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk"}},
    "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
}


@pytest.fixture
def resolver() -> Resolver:
    created = {"Queue": Created("url", {"Arn": "arn:q"})}
    return Resolver("S", "1", "here-1", TEMPLATE, {"S:Out": "imported"}, created)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "Queue"}, "url"),
        ({"Ref": "AWS::AccountId"}, "1"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn:q"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Queue"}, 3]]}, "a-url-3"),
        ({"Fn::Sub": "${AWS::AccountId}/${AWS::Region}"}, "1/here-1"),
        ({"Fn::Select": [1, {"Fn::Split": [":", {"Fn::GetAtt": ["Queue", "Arn"]}]}]}, "q"),
        ({"Fn::ImportValue": "S:Out"}, "imported"),
        (
            {"a": [{"Ref": "Queue"}, 1], "b": {"Ref": "AWS::Partition"}},
            {"a": ["url", 1], "b": "aws"},
        ),
    ],
)
def test_an_intrinsic_has_its_value(resolver: Resolver, value: Any, expected: Any) -> None:
    assert resolver.resolve(value) == expected


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
        ({"Fn::ImportValue": "Nowhere"}, "Fn::ImportValue Nowhere"),
    ],
)
def test_what_is_not_known_is_named(resolver: Resolver, value: Any, message: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match=message):
        resolver.resolve(value)


def test_references_are_found_wherever_they_stand() -> None:
    value = {
        "a": [{"Ref": "One"}, {"Fn::GetAtt": ["Two", "Arn"]}],
        "b": {"Fn::Join": ["", ["x", {"Ref": "Three"}]]},
    }
    assert set(references(value)) == {"One", "Two", "Three"}

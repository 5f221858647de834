"""CloudFormation's intrinsic functions."""

from __future__ import annotations

from typing import Any

import pytest

from s3commit.local.errors import UnsupportedTemplateError
from s3commit.local.intrinsics import Created, Resolver, references

TEMPLATE = {
    "Parameters": {
        "Plain": {"Type": "String", "Default": "given"},
        "Open": {"Type": "String"},
        "Boot": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk"},
    },
    "Conditions": {
        "Yes": {"Fn::Equals": [{"Ref": "AWS::Region"}, "here-1"]},
        "No": {"Fn::Not": [{"Condition": "Yes"}]},
        "Both": {"Fn::And": [{"Condition": "Yes"}, {"Fn::Or": [{"Condition": "No"}]}]},
    },
    "Mappings": {"M": {"here-1": {"x": 7}}},
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
        ({"Ref": "Plain"}, "given"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn:q"),
        ({"Fn::GetAtt": "Queue.Arn"}, "arn:q"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Queue"}, 3]]}, "a-url-3"),
        ({"Fn::Sub": "${Queue}/${Queue.Arn}/${!Kept}/${AWS::Region}"}, "url/arn:q/${Kept}/here-1"),
        ({"Fn::Sub": ["${A}", {"A": {"Ref": "Queue"}}]}, "url"),
        ({"Fn::Select": [1, {"Fn::Split": [":", {"Fn::GetAtt": ["Queue", "Arn"]}]}]}, "q"),
        ({"Fn::ImportValue": {"Fn::Sub": "S:Out"}}, "imported"),
        ({"Fn::If": ["Yes", 1, 2]}, 1),
        ({"Fn::If": ["Both", 1, 2]}, 2),
        ({"Fn::FindInMap": ["M", {"Ref": "AWS::Region"}, "x"]}, 7),
        ({"Fn::Base64": "x"}, "eA=="),
        ({"a": [{"Ref": "AWS::NoValue"}, 1], "b": {"Ref": "AWS::NoValue"}}, {"a": [1]}),
    ],
)
def test_an_intrinsic_has_its_value(resolver: Resolver, value: Any, expected: Any) -> None:
    assert resolver.resolve(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::Cidr": []}, "Fn::Cidr"),
        ({"Ref": "Nobody"}, "Ref Nobody"),
        ({"Ref": "Open"}, "the parameter Open has no value"),
        ({"Ref": "Boot"}, "the parameter Boot has no value"),
        ({"Fn::GetAtt": ["Queue", "Colour"]}, "AWS::SQS::Queue Queue has no attribute Colour"),
        ({"Fn::ImportValue": "Nowhere"}, "Fn::ImportValue Nowhere"),
        ({"Fn::If": ["Perhaps", 1, 2]}, "the condition Perhaps"),
        ({"Fn::FindInMap": ["M", "a", "b"]}, "Fn::FindInMap M.a.b"),
    ],
)
def test_what_is_not_known_is_named(resolver: Resolver, value: Any, message: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match=message):
        resolver.resolve(value)


def test_references_are_found_wherever_they_stand() -> None:
    value = {
        "a": [{"Ref": "One"}, {"Fn::GetAtt": ["Two", "Arn"]}, {"Fn::GetAtt": "Three.Arn"}],
        "b": {"Fn::Sub": ["${Four.Arn} ${!Five} ${Six}", {"Six": {"Ref": "Seven"}}]},
    }
    assert set(references(value)) == {"One", "Two", "Three", "Four", "Six", "Seven"}

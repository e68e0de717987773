"""What `Ref` and `Fn::GetAtt` give, by type: the form that AWS gives, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from coldframe_local.emulator.template.syntax.errors import NotKnown, TemplateError
from coldframe_local.emulator.template.syntax.parameters import pseudo_parameters
from coldframe_local.emulator.template.syntax.resources import Resources

HERE = "us-east-1:123456789012"


def resources(kind: str, **properties: Any) -> Resources:
    document = {"Resources": {"X": {"Type": kind, "Properties": properties}}}
    return Resources(document, pseudo_parameters(), "http://127.0.0.1:3000")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("AWS::Serverless::Function", "X"),
        ("AWS::Lambda::Function", "X"),
        ("AWS::DynamoDB::Table", "coldframe-X"),
        ("AWS::S3::Bucket", "coldframe-x"),
        ("AWS::SQS::Queue", "https://sqs.us-east-1.amazonaws.com/123456789012/coldframe-X"),
        ("AWS::SNS::Topic", f"arn:aws:sns:{HERE}:coldframe-X"),
        ("AWS::StepFunctions::StateMachine", f"arn:aws:states:{HERE}:stateMachine:coldframe-X"),
        ("AWS::Serverless::StateMachine", f"arn:aws:states:{HERE}:stateMachine:coldframe-X"),
        ("AWS::SSM::Parameter", "coldframe-X"),
        ("AWS::Logs::LogGroup", "coldframe-X"),
    ],
)
def test_ref(kind: str, expected: str) -> None:
    """It is a name, an ARN or an address, as the type has it."""
    assert resources(kind).resolve({"Ref": "X"}, "Here") == expected


@pytest.mark.parametrize(
    ("kind", "attribute", "expected"),
    [
        ("AWS::Serverless::Function", "Arn", f"arn:aws:lambda:{HERE}:function:X"),
        ("AWS::SNS::Topic", "TopicName", "coldframe-X"),
        ("AWS::SQS::Queue", "Arn", f"arn:aws:sqs:{HERE}:coldframe-X"),
        ("AWS::S3::Bucket", "RegionalDomainName", "coldframe-x.s3.us-east-1.amazonaws.com"),
        ("AWS::Logs::LogGroup", "Arn", f"arn:aws:logs:{HERE}:log-group:coldframe-X:*"),
        ("AWS::IAM::Role", "Arn", "arn:aws:iam::123456789012:role/coldframe-X"),
        ("AWS::Serverless::HttpApi", "ApiEndpoint", "http://127.0.0.1:3000"),
    ],
)
def test_attribute(kind: str, attribute: str, expected: str) -> None:
    """ARNs have the service, region and prefix of their type."""
    assert resources(kind).resolve({"Fn::GetAtt": ["X", attribute]}, "Here") == expected


def test_given_name() -> None:
    """A name of the template is in whatever is made of it; a FIFO topic's ends as AWS asks for."""
    assert resources("AWS::SNS::Topic", TopicName="mine").reference("X") == f"arn:aws:sns:{HERE}:mine"
    fifo = resources("AWS::SNS::Topic", FifoTopic=True)
    assert fifo.reference("X") == f"arn:aws:sns:{HERE}:coldframe-X.fifo"


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "X"},  # ends in characters that AWS makes up
        {"Fn::GetAtt": ["X", "Arn"]},
        {"Fn::Sub": "${X}/more"},
    ],
)
def test_what_only_aws_knows(value: Any) -> None:
    """There is no guess: the error says what has no value."""
    with pytest.raises(NotKnown, match=r"^Here: \w+ of X \(AWS::SecretsManager::Secret\) has no value"):
        resources("AWS::SecretsManager::Secret").resolve(value, "Here")


def test_what_is_not_in_the_template() -> None:
    """A name that is nowhere is an error of the template, as on AWS."""
    with pytest.raises(TemplateError, match="refers to Y, which is not a parameter") as error:
        resources("AWS::SNS::Topic").resolve({"Ref": "Y"}, "Here")
    assert not isinstance(error.value, NotKnown)

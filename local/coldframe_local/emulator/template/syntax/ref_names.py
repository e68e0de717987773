"""Names of resources in CloudFormation, by type: the name, and the values of `Ref` and `Fn::GetAtt`.

A type or an attribute that is not here has no value on this machine: AWS makes it up, or nothing of the kind
exists here. It is an error to ask for it, never a guess.

Pure. Source: "Return values" of each type's page, read 2026-11-21, below
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html.
`tests/integration/test_emulated_template.py` compares the table with AWS's own resource schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FUNCTION = "AWS::Serverless::Function"
PLAIN_FUNCTION = "AWS::Lambda::Function"
LAYER = "AWS::Serverless::LayerVersion"
PLAIN_LAYER = "AWS::Lambda::LayerVersion"
TABLE = "AWS::DynamoDB::Table"
SIMPLE_TABLE = "AWS::Serverless::SimpleTable"
BUCKET = "AWS::S3::Bucket"
QUEUE = "AWS::SQS::Queue"
HTTP_API = "AWS::Serverless::HttpApi"
REST_API = "AWS::Serverless::Api"
EVENT_INVOKE_CONFIG = "AWS::Lambda::EventInvokeConfig"
EVENT_SOURCE_MAPPING = "AWS::Lambda::EventSourceMapping"
RULE = "AWS::Events::Rule"
SCHEDULE = "AWS::Scheduler::Schedule"
SUBSCRIPTION_FILTER = "AWS::Logs::SubscriptionFilter"


@dataclass(frozen=True, slots=True)
class Identity:
    """Names of resources of a type.

    name: the property with the name. reference: value of `Ref`. attributes: values of `Fn::GetAtt`.
    Both are patterns of {name}, {region}, {account} and {url}, which is where the emulator listens.
    """

    name: str
    reference: str = "{name}"
    attributes: Mapping[str, str] = field(default_factory=dict)


def _named(name: str, arn: str, **attributes: str) -> Identity:
    """A type whose `Ref` is the name."""
    return Identity(name, attributes={"Arn": arn, **attributes})


def _by_arn(name: str, arn: str, **attributes: str) -> Identity:
    """A type whose `Ref` is the ARN."""
    return Identity(name, arn, attributes)


_IN_REGION = "{region}:{account}"
_FUNCTION = _named("FunctionName", f"arn:aws:lambda:{_IN_REGION}:function:{{name}}")
_TABLE = _named("TableName", f"arn:aws:dynamodb:{_IN_REGION}:table/{{name}}")
# A stack that was deployed once has the first version of each layer.
_LAYER = f"arn:aws:lambda:{_IN_REGION}:layer:{{name}}:1"
_QUEUE_URL = "https://sqs.{region}.amazonaws.com/{account}/{name}"
_STATE_MACHINE = f"arn:aws:states:{_IN_REGION}:stateMachine:{{name}}"
_TOPIC = f"arn:aws:sns:{_IN_REGION}:{{name}}"

IDENTITIES: Mapping[str, Identity] = {
    FUNCTION: _FUNCTION,
    PLAIN_FUNCTION: _FUNCTION,
    LAYER: _by_arn("LayerName", _LAYER),
    PLAIN_LAYER: _by_arn("LayerName", _LAYER),
    TABLE: _TABLE,
    SIMPLE_TABLE: _TABLE,
    BUCKET: _named(
        "BucketName",
        "arn:aws:s3:::{name}",
        DomainName="{name}.s3.amazonaws.com",
        RegionalDomainName="{name}.s3.{region}.amazonaws.com",
    ),
    QUEUE: Identity(
        "QueueName",
        _QUEUE_URL,
        {"Arn": f"arn:aws:sqs:{_IN_REGION}:{{name}}", "QueueName": "{name}", "QueueUrl": _QUEUE_URL},
    ),
    # The identifier of an API is its logical id here, as in events and in the console.
    HTTP_API: Identity("", attributes={"ApiEndpoint": "{url}"}),
    REST_API: Identity(""),
    "AWS::CloudWatch::Alarm": _named("AlarmName", f"arn:aws:cloudwatch:{_IN_REGION}:alarm:{{name}}"),
    "AWS::Events::EventBus": _named("Name", f"arn:aws:events:{_IN_REGION}:event-bus/{{name}}"),
    # A rule on another bus than the default one is called otherwise, but then it has no schedule.
    RULE: _named("Name", f"arn:aws:events:{_IN_REGION}:rule/{{name}}"),
    SCHEDULE: _named("Name", f"arn:aws:scheduler:{_IN_REGION}:schedule/default/{{name}}"),
    "AWS::IAM::Role": _named("RoleName", "arn:aws:iam::{account}:role/{name}"),
    "AWS::Kinesis::Stream": _named("Name", f"arn:aws:kinesis:{_IN_REGION}:stream/{{name}}"),
    "AWS::KinesisFirehose::DeliveryStream": _named(
        "DeliveryStreamName", f"arn:aws:firehose:{_IN_REGION}:deliverystream/{{name}}"
    ),
    SUBSCRIPTION_FILTER: Identity("FilterName"),
    "AWS::Logs::LogGroup": _named("LogGroupName", f"arn:aws:logs:{_IN_REGION}:log-group:{{name}}:*"),
    "AWS::SNS::Topic": _by_arn("TopicName", _TOPIC, TopicArn=_TOPIC, TopicName="{name}"),
    "AWS::SSM::Parameter": Identity("Name"),
    "AWS::Serverless::StateMachine": _by_arn("Name", _STATE_MACHINE, Arn=_STATE_MACHINE, Name="{name}"),
    "AWS::StepFunctions::StateMachine": _by_arn(
        "StateMachineName", _STATE_MACHINE, Arn=_STATE_MACHINE, Name="{name}"
    ),
}

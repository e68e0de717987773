"""What the template asks of single services, sent to moto with boto3 and read back.

CloudFormation's resource types have the shapes of these calls, but for a few spellings.
"""

import json
from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from tests.support import stacks
from tests.support.stacks import PROVISIONED, properties, stack

pytestmark = [pytest.mark.containers, *stacks.needs_translator]
ALIAS = "function:predict:live"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """moto in place of AWS, with credentials that open nothing."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-any-log")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield


@pytest.mark.usefixtures("aws")
def test_table() -> None:
    """The table is made as the template describes it: encrypted, restorable, forgetting."""
    wanted = properties(stack(), "CacheTable")
    client = boto3.client("dynamodb")
    client.create_table(
        TableName="cache",
        BillingMode=wanted["BillingMode"],
        KeySchema=wanted["KeySchema"],
        AttributeDefinitions=wanted["AttributeDefinitions"],
        SSESpecification={"Enabled": wanted["SSESpecification"]["SSEEnabled"]},
    )
    client.update_time_to_live(TableName="cache", TimeToLiveSpecification=wanted["TimeToLiveSpecification"])
    client.update_continuous_backups(
        TableName="cache", PointInTimeRecoverySpecification=wanted["PointInTimeRecoverySpecification"]
    )
    table = client.describe_table(TableName="cache")["Table"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["SSEDescription"]["Status"] == "ENABLED"
    expiry = client.describe_time_to_live(TableName="cache")["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at_s"}
    backups = client.describe_continuous_backups(TableName="cache")["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


@pytest.mark.usefixtures("aws")
def test_bucket_forgets() -> None:
    """Objects expire, and uploads that were never finished sooner."""
    [rule] = properties(stack(), "CacheBucket")["LifecycleConfiguration"]["Rules"]
    client = boto3.client("s3")
    client.create_bucket(Bucket="cache")
    client.put_bucket_lifecycle_configuration(
        Bucket="cache",
        LifecycleConfiguration={
            "Rules": [
                {
                    "ID": rule["Id"],
                    "Status": rule["Status"],
                    "Filter": {},
                    "Expiration": {"Days": rule["ExpirationInDays"]},
                    "AbortIncompleteMultipartUpload": rule["AbortIncompleteMultipartUpload"],
                }
            ]
        },
    )
    [found] = client.get_bucket_lifecycle_configuration(Bucket="cache")["Rules"]
    assert found["Expiration"] == {"Days": 30}
    assert found["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


@pytest.mark.usefixtures("aws")
def test_queue() -> None:
    """The queue is made as the template describes it; a record of a megabyte comes out as it went in."""
    made = stack()
    wanted = properties(made, "FailedEvents")
    client = boto3.client("sqs")
    attributes = {name: str(value).lower() for name, value in wanted.items()}
    url = client.create_queue(QueueName="failed", Attributes=attributes)["QueueUrl"]
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes.items() <= found.items()
    assert found["SqsManagedSseEnabled"] == "true"
    policy = properties(made, "FailedEventsPolicy")["PolicyDocument"]
    [statement] = policy["Statement"]
    policy = json.dumps({**policy, "Statement": [{**statement, "Resource": found["QueueArn"]}]})
    client.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    kept = client.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]
    assert json.loads(kept["Policy"]) == json.loads(policy)
    record = json.dumps({"requestPayload": {"body": "x" * 1_000_000}})
    client.send_message(QueueUrl=url, MessageBody=record)
    [message] = client.receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == record


@pytest.mark.usefixtures("aws")
def test_provisioned_concurrency_scales() -> None:
    """Application Auto Scaling takes target and policy, and gives them back."""
    made = stack(**PROVISIONED)
    target = properties(made, "ProvisionedConcurrencyTarget")
    policy = properties(made, "ProvisionedConcurrencyPolicy")
    client = boto3.client("application-autoscaling")
    place = {
        "ServiceNamespace": target["ServiceNamespace"],
        "ScalableDimension": target["ScalableDimension"],
        "ResourceId": ALIAS,
    }
    client.register_scalable_target(
        **place, MinCapacity=int(target["MinCapacity"]), MaxCapacity=int(target["MaxCapacity"])
    )
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    client.put_scaling_policy(
        **place,
        PolicyName=policy["PolicyName"],
        PolicyType=policy["PolicyType"],
        TargetTrackingScalingPolicyConfiguration=configuration,
    )
    [found] = client.describe_scalable_targets(ServiceNamespace="lambda")["ScalableTargets"]
    assert (found["ResourceId"], found["MinCapacity"], found["MaxCapacity"]) == (ALIAS, 1, 4)
    [scaling] = client.describe_scaling_policies(ServiceNamespace="lambda")["ScalingPolicies"]
    assert scaling["TargetTrackingScalingPolicyConfiguration"] == configuration

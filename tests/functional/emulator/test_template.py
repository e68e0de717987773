"""A template of somebody else, of which only a part can run on this machine."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template

pytestmark = pytest.mark.anyio

PATIENCE_S = 60.0
MIXED = """
Resources:
  Hello:
    Type: AWS::Serverless::Function
    Properties:
      InlineCode: |
        import os
        def handler(event, context):
            return {"statusCode": 200, "body": f"{os.environ['TOPIC']} {'STREAM' in os.environ}"}
      Handler: index.handler
      Runtime: python3.11
      VpcConfig: {SubnetIds: [a], SecurityGroupIds: [b]}
      Environment: {Variables: {TOPIC: !Ref Topic, STREAM: !GetAtt Items.StreamArn}}
      Events: {Any: {Type: HttpApi}}
  Plain:
    Type: AWS::Lambda::Function
    Properties:
      Code: {ZipFile: "def handler(event, context): return event['n'] + 1"}
      Handler: index.handler
      Runtime: python3.11
  Script: {Type: AWS::Serverless::Function, Properties: {CodeUri: x, Handler: a.b, Runtime: nodejs22.x}}
  Topic: {Type: AWS::SNS::Topic}
  Items: {Type: AWS::Serverless::SimpleTable}
"""


async def test_what_can_run_runs_and_the_rest_is_named(tmp_path: Path) -> None:
    """The functions in Python answer, by their route and by the Lambda API; a line says what does not."""
    path = tmp_path / "template.yaml"
    path.write_text(MIXED)
    options = EmulatorOptions(port=0, template=load_template(path), log=lambda line: None)
    async with (
        Emulator(options) as emulator,
        httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as web,
    ):
        answer = await web.get("/")
        invoked = await web.post("/2015-03-31/functions/Plain/invocations", json={"n": 1})
        notes = "\n".join(emulator.notes())
    assert answer.text == "arn:aws:sns:us-east-1:123456789012:coldframe-Topic False"
    assert invoked.json() == 2
    assert "Left out: Script: found nodejs22.x, expected a Python function" in notes
    assert "Not set: Hello.Environment.Variables.STREAM: StreamArn of Items" in notes
    assert "Ignored: Hello.VpcConfig: the function is in this machine's network." in notes
    assert "Not on this machine: Topic: AWS::SNS::Topic." in notes

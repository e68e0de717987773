"""A template with its nested applications: one, in which a resource has its application's name first."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.template.syntax import applications
from coldframe_local.emulator.template.syntax.applications import read_with_applications
from coldframe_local.emulator.template.syntax.documents import read_document
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.template import load_template

ROOT = """
Parameters: {Address: {Type: String, Default: ""}}
Conditions: {HasAddress: !Not [!Equals [!Ref Address, ""]]}
Resources:
  Queue: {Type: AWS::SQS::Queue}
  Inner:
    Type: AWS::Serverless::Application
    Condition: HasAddress
    Properties:
      Location: inner/template.yaml
      Parameters: {QueueArn: !GetAtt Queue.Arn, Where: !Ref Address, Tries: !If [HasAddress, 2, 1]}
Outputs:
  Name: {Value: !GetAtt Inner.Outputs.Name}
  Text: {Value: !Sub "a ${Inner.Outputs.Name} of ${AWS::StackName}"}
"""

INNER = """
Parameters:
  QueueArn: {Type: String}
  Where: {Type: String}
  Tries: {Type: Number}
  Size: {Type: Number, Default: 128}
Conditions: {IsHome: !Equals [!Ref Where, home]}
Mappings: {Sizes: {us-east-1: {Small: 1}}}
Globals: {Function: {Runtime: python3.13, Environment: {Variables: {COLOUR: red}}}}
Resources:
  Function:
    Type: AWS::Serverless::Function
    DependsOn: Group
    Properties:
      CodeUri: code
      Handler: app.handler
      MemorySize: !Ref Size
      Role: !GetAtt Role.Arn
      Environment: {Variables: {SHAPE: round}}
  Role: {Type: AWS::IAM::Role, Condition: IsHome}
  Group: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: !Sub "/of/${AWS::StackName}"}}
  Texts:
    Type: Any::Type::There::Is
    Properties:
      Inlined: !Sub "${QueueArn}/${Where}/${Size}/${Role.Arn}/${Role}/${!Where}/${AWS::Region}"
      Beside: !Sub ["${Tries} of ${Own}", {Own: !Ref Where}]
      Chosen: !If [IsHome, !Ref Where, !FindInMap [Sizes, !Ref AWS::Region, Small]]
Outputs: {Name: {Value: !Ref Function}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The outer template; the inner one is in a folder of its own."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "template.yaml").write_text(INNER)
    outer = tmp_path / "template.yaml"
    outer.write_text(ROOT)
    return outer


def properties(path: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = read_with_applications(path)["Resources"][name]["Properties"]
    return found


def test_resources_have_the_application_s_name_first(path: Path) -> None:
    """The application itself is gone; its resources, conditions and mappings are there under longer names."""
    whole = read_with_applications(path)
    assert set(whole["Resources"]) == {"Queue", "InnerFunction", "InnerRole", "InnerGroup", "InnerTexts"}
    assert {"HasAddress", "InnerIsHome"} <= set(whole["Conditions"])
    assert whole["Conditions"]["InnerIsHome"] == {"Fn::Equals": [{"Ref": "Address"}, "home"]}
    assert set(whole["Mappings"]) == {"InnerSizes"}


def test_references_lead_to_what_the_parameters_were_given(path: Path) -> None:
    """A parameter becomes its value, a default included; a resource is called by its longer name."""
    function = properties(path, "InnerFunction")
    assert (function["MemorySize"], function["Role"]) == (128, {"Fn::GetAtt": ["InnerRole", "Arn"]})
    assert read_with_applications(path)["Resources"]["InnerFunction"]["DependsOn"] == ["InnerGroup"]
    texts = properties(path, "InnerTexts")
    assert texts["Inlined"] == {
        "Fn::Sub": "${Queue.Arn}/${Address}/128/${InnerRole.Arn}/${InnerRole}/${!Where}/${AWS::Region}"
    }
    assert texts["Beside"] == {
        "Fn::Sub": [
            "${Tries} of ${Own}",
            {"Own": {"Ref": "Address"}, "Tries": {"Fn::If": ["HasAddress", 2, 1]}},
        ]
    }
    in_map = {"Fn::FindInMap": ["InnerSizes", {"Ref": "AWS::Region"}, "Small"]}
    assert texts["Chosen"] == {"Fn::If": ["InnerIsHome", {"Ref": "Address"}, in_map]}


def test_outputs_are_what_they_refer_to(path: Path) -> None:
    """`!GetAtt Application.Outputs.Name` is the value of that output, in a text as well."""
    outputs = read_with_applications(path)["Outputs"]
    assert outputs["Name"]["Value"] == {"Ref": "InnerFunction"}
    assert outputs["Text"]["Value"] == {"Fn::Sub": "a ${InnerFunction} of ${AWS::StackName}"}


def test_stack_of_an_application_has_a_name_of_its_own(path: Path) -> None:
    """`AWS::StackName` inside an application begins with the name of the stack around it."""
    assert properties(path, "InnerGroup")["LogGroupName"] == {"Fn::Sub": "/of/${AWS::StackName}-Inner"}


def test_condition_of_an_application_is_one_of_its_resources(path: Path) -> None:
    """A resource exists when its own condition and that of the application hold."""
    whole = read_with_applications(path)
    assert whole["Resources"]["InnerFunction"]["Condition"] == "HasAddress"
    assert whole["Conditions"][whole["Resources"]["InnerRole"]["Condition"]] == {
        "Fn::And": [{"Condition": "HasAddress"}, {"Condition": "InnerIsHome"}]
    }


def test_globals_stay_in_their_template(path: Path) -> None:
    """Globals of one template are for its resources, and for none of another template."""
    path.write_text(ROOT + "Globals: {Function: {Timeout: 9}}")
    function = properties(path, "InnerFunction")
    assert function["Runtime"] == "python3.13"
    assert function["Environment"]["Variables"] == {"COLOUR": "red", "SHAPE": "round"}
    assert "Timeout" not in function
    assert "Globals" not in read_with_applications(path)


def test_folders_are_those_of_the_inner_template(path: Path) -> None:
    """Code of an application is beside its template, wherever the outer template is; the emulator runs it."""
    assert properties(path, "InnerFunction")["CodeUri"] == "inner/code"
    [function] = load_template(path, {"Address": "home"}).functions
    assert function.settings.task_root == path.parent / "inner" / "code"


def test_applications_may_have_applications(path: Path) -> None:
    """What is nested twice has both names first."""
    outermost = path.parent / "outermost.yaml"
    outermost.write_text(
        "Resources: {Outer: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: template.yaml}}}"
    )
    assert "OuterInnerFunction" in read_with_applications(outermost)["Resources"]


def test_application_of_another_place_stays(path: Path) -> None:
    """What is not a file on this machine is left as it is written."""
    elsewhere = "https://s3.amazonaws.com/somebody/template.yaml"
    path.write_text(ROOT.replace("inner/template.yaml", elsewhere))
    assert read_with_applications(path)["Resources"]["Inner"]["Properties"]["Location"] == elsewhere


@pytest.mark.parametrize(
    ("written", "instead", "why"),
    [
        ("inner/template.yaml", "missing.yaml", r"missing\.yaml cannot be read"),
        ("Where: !Ref Address, ", "", "Inner has no value for the parameter Where"),
        ("Where:", "Wheer:", "Inner is given the parameter Wheer, expected one of: QueueArn, Where"),
        ("Parameters: {QueueArn: !GetAtt", "Parameters: [!GetAtt", "expected"),
    ],
)
def test_application_that_cannot_be_read(written: str, instead: str, why: str, path: Path) -> None:
    """The error names the application, or its file, and says what is wrong with it."""
    text = ROOT.replace(written, instead)
    path.write_text(
        text.replace("[HasAddress, 2, 1]}", "[HasAddress, 2, 1]]") if "[!GetAtt" in instead else text
    )
    with pytest.raises(TemplateError, match=why):
        read_with_applications(path)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every node below a value."""
    children = (
        enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    )
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


@pytest.mark.parametrize("stranger", ([1], {"a": 1}, 7, "text", None), ids=lambda each: type(each).__name__)
def test_every_node_may_be_wrong(stranger: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list, a map, a number, text or nothing anywhere in an application: it loads, or is an error."""
    whole = {each: read_document(each) for each in (path, path.parent / "inner" / "template.yaml")}
    for file, document in whole.items():
        for place in places(document["Resources"], ("Resources",)):
            changed = copy.deepcopy(whole)
            at: Any = changed[file]
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = stranger
            monkeypatch.setattr(applications, "read_document", changed.__getitem__)
            try:
                read_with_applications(path)
            except TemplateError as exc:
                assert str(exc)
            except KeyError as exc:  # another Location: no file of this test
                assert "Location" in place or "Type" in place, (place, exc)

"""Prints a SAM template as JSON: as it is written, and as CloudFormation gets it.

Runs in the SAM CLI's own environment, which pins versions that ours does not have:

    .venv-sam/bin/python …/template/syntax/translate.py template.yaml Name=Value …
"""

import copy
import json
import os
import sys
from pathlib import Path
from typing import Any

REGION = "us-east-1"
# What `sam deploy` would have uploaded by now; the translator only looks at the form.
_IMAGE = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/coldframe:serve"
_UPLOADED = "s3://uploaded-by/sam-deploy"


def translate(template: dict[str, Any], parameters: dict[str, str]) -> dict[str, Any]:
    """The CloudFormation template that AWS makes of a SAM template, for these parameters."""
    from samtranslator.parser.parser import Parser
    from samtranslator.translator.translator import Translator

    uploaded = copy.deepcopy(template)
    for resource in uploaded["Resources"].values():
        properties = resource.get("Properties") or {}
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            properties["ContentUri"] = _UPLOADED
        elif resource["Type"] == "AWS::Serverless::StateMachine" and "DefinitionUri" in properties:
            properties["DefinitionUri"] = _UPLOADED
        elif resource["Type"] == "AWS::Serverless::Function":
            is_image = properties.get("PackageType") == "Image"
            properties["ImageUri" if is_image else "CodeUri"] = _IMAGE if is_image else _UPLOADED
    os.environ["AWS_DEFAULT_REGION"] = REGION
    defaults = {
        name: parameter["Default"]
        for name, parameter in template.get("Parameters", {}).items()
        if "Default" in parameter
    }
    translated: dict[str, Any] = Translator({}, Parser()).translate(uploaded, {**defaults, **parameters})
    return translated


def main(path: str, *pairs: str) -> None:
    """Prints {"written": …, "translated": …}; what is wrong with the template goes to stderr.

    path: of the template; `-`: it comes by standard input.
    """
    from samcli.yamlhelper import yaml_parse
    from samtranslator.model.exceptions import InvalidDocumentException
    from yaml import YAMLError

    try:
        source = yaml_parse(sys.stdin.read() if path == "-" else Path(path).read_text())
        translated = translate(source, dict(pair.split("=", 1) for pair in pairs))
    except OSError as exc:
        sys.exit(f"cannot be read: {exc.strerror}")
    except YAMLError as exc:
        sys.exit("is not YAML: " + " ".join(str(exc).split()))
    except InvalidDocumentException as exc:
        sys.exit("is refused by SAM: " + " ".join(cause.message for cause in exc.causes))
    except (AttributeError, KeyError, TypeError):
        sys.exit("is not a SAM template: it has no Resources with a Type each")
    json.dump({"written": source, "translated": translated}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`coldframe check`: what AWS would refuse."""

import sys
from pathlib import Path

import click

from coldframe.capacity import limits
from coldframe_local.commands.outputs import json_option, print_json
from coldframe_local.name_value import template_parameters
from coldframe_local.paths import ROOT
from coldframe_local.paths import model_dir as _model_dir

_TEMPLATE = ROOT / "template.yaml"


@click.command()
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=_TEMPLATE,
    help="A SAM template; default: the project's own.",
)
@template_parameters
@click.option(
    "--account-concurrency",
    default=limits.CONCURRENCY.value,
    show_default=True,
    type=click.IntRange(1),
    help="The account's limit; a new account may have less.",
)
@json_option
def check(
    template: Path, parameters: tuple[tuple[str, str], ...], account_concurrency: int, as_json: bool
) -> None:
    """Refuse what AWS would refuse during a deployment, or after it."""
    from coldframe_local.deploy.check.check import RULES
    from coldframe_local.deploy.check.check import check as findings_of
    from coldframe_local.deploy.check.deployment import load_deployment
    from coldframe_local.emulator.template.syntax.cloudformation import load_stack

    stack = load_stack(template, dict(parameters))
    findings = findings_of(load_deployment(stack, _model_dir(), account_concurrency))
    if as_json:
        print_json({"findings": findings, "resources": len(stack.resources), "rules": len(RULES)})
    for finding in [] if as_json else findings:
        click.echo(finding)
    if findings:
        sys.exit(1)
    if not as_json:
        click.echo(f"{template.name}: {len(stack.resources)} resources pass {len(RULES)} rules")

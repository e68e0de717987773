"""`coldframe feedback …`: keys for the texts of feedback, and the texts that a table holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldframe_local.command_group import Group
from coldframe_local.commands.outputs import json_option, print_json, require

if TYPE_CHECKING:
    from coldframe.feedback.rows import FeedbackRows

KEYS = click.Path(exists=True, dir_okay=False, path_type=Path)
_OWNER_ALONE = 0o600  # mode of a file


@click.group(cls=Group)
def feedback() -> None:
    """Create keys for the texts of feedback, and read these texts."""


@feedback.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def keys(file: Path, as_json: bool) -> None:
    """Write a new secret key to FILE, and print its public key, which is a setting of the deployment.

    An existing FILE gets a further line: its older keys still open older texts.
    """
    require("cryptography", "feedback")
    from coldframe.feedback.texts import new_keys

    public, secret = new_keys()
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _OWNER_ALONE), "w") as lines:
            lines.write(secret + "\n")
    except OSError as exc:
        raise click.ClickException(f"{file} cannot be written: {exc.strerror}. Choose another file.") from exc
    if as_json:
        print_json({"public_key": public, "file": str(file)})
    else:
        click.echo(f"COLDFRAME_FEEDBACK_TEXT_KEY={public}")
        click.echo(f"{file} has the secret key. Keep it where models are trained.", err=True)


@feedback.command()
@click.argument("table")
@click.option("--keys", required=True, type=KEYS, help="File with secret keys, one a line.")
def texts(table: str, keys: Path) -> None:
    """Print the texts of the DynamoDB table TABLE in clear, with their right labels, as lines of JSON."""
    for row in read_feedback(table, keys).rows:
        print_json(row)


def read_feedback(table: str, keys: Path) -> FeedbackRows:
    """Rows of a DynamoDB table. Warns of texts that cannot be read; raises click.ClickException."""
    require("cryptography", "feedback")
    import time

    import boto3

    from coldframe.feedback.rows import read_rows
    from coldframe.feedback.table import FeedbackTable, TableFails
    from coldframe.feedback.texts import BadKey, TextOpener

    try:
        opener = TextOpener(keys.read_text(encoding="utf-8", errors="replace").split())
    except BadKey as exc:
        raise click.ClickException(f"{keys}: {exc}") from exc
    try:
        rows = read_rows(FeedbackTable(table, lambda: boto3.client("dynamodb"), time.time), opener)
    except TableFails as exc:
        raise click.ClickException(f"{table}: {exc}. Check the name, the region and the role.") from exc
    if rows.unreadable:
        click.echo(f"Warning: no key in {keys} opens {rows.unreadable:,} texts. Add their keys.", err=True)
    return rows

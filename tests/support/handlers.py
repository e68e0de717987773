"""Tiny functions that the emulator's tests run in real environments."""

from __future__ import annotations

import base64
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

Event = dict[str, Any]

_invocations = 0


def echo(event: Event, context: Any) -> Event:
    """What this environment was given, and which environment it is."""
    global _invocations
    _invocations += 1
    return {
        "pid": os.getpid(),
        "start": "cold" if _invocations == 1 else "warm",
        "event": event,
        "environ": dict(os.environ),
        "remaining_ms": context.get_remaining_time_in_millis(),
        "arn": context.invoked_function_arn,
    }


def route(event: Event, context: Any) -> Any:
    """Does what the path says, so that one environment can misbehave and another one serve."""
    return _ROUTES[event["rawPath"]](event, context)


def gate(event: Event, context: Any) -> Event:
    """Says that it runs by making a file, then waits until the test makes another one."""
    folder = Path(os.environ["GATE"])
    (folder / f"running-{os.getpid()}").touch()
    while not (folder / "open").exists():
        time.sleep(0.005)
    return echo(event, context)


def fail(event: Event, context: Any) -> Event:
    """Raises, as functions do."""
    raise LookupError("no such key")


def leave(event: Event, context: Any) -> Event:
    """Ends the process in the middle of the invocation."""
    os._exit(3)


def big(event: Event, context: Any) -> Event:
    """Answers with more than Lambda's payload limit."""
    return {"statusCode": 200, "body": "x" * 7_000_000}


def large(event: Event, context: Any) -> Event:
    """Answers with nearly as much as Lambda's payload limit."""
    return {"statusCode": 200, "body": "x" * 5_900_000}


def shaped(event: Event, context: Any) -> Event:
    """A full payload 2.0 response."""
    return {
        "statusCode": 201,
        "headers": {"X-Kind": "seedling", "content-type": "application/octet-stream"},
        "cookies": ["a=1", "b=2; HttpOnly"],
        "body": "/wA=",
        "isBase64Encoded": True,
    }


def allocate(event: Event, context: Any) -> int:
    """Touches as many MB as the event says, for as long as it waits or until it answers."""
    held = bytearray(event["mb"] * 1024 * 1024)
    held[::4096] = b"x" * len(held[::4096])
    if event.get("wait"):
        time.sleep(3600)
    return len(held)


def burn(event: Event, context: Any) -> float:
    """Uses CPU for so many seconds, and says how many they were."""
    started_s = time.process_time()
    while time.process_time() - started_s < event["cpu_s"]:
        pass
    return time.process_time() - started_s


def files(event: Event, context: Any) -> tuple[int, int]:
    """How many files may be open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def nothing(event: Event, context: Any) -> Event:
    """As little as a function can do."""
    return {}


def size(event: Event, context: Any) -> int:
    """How much body arrived."""
    return len(event["body"])


def malformed(event: Event, context: Any) -> Event:
    """No status that HTTP knows."""
    return {"statusCode": "soon", "body": ""}


def speak(event: Event, context: Any) -> Event:
    """Writes two lines, the second one unfinished."""
    print("first line")
    print("second line", end="")
    return {}


def say(event: Event, context: Any) -> Any:
    """Answers with what the request's body asks for."""
    body = base64.b64decode(event["body"]) if event["isBase64Encoded"] else event["body"]
    return json.loads(body)


def said(event: Event, context: Any) -> Any:
    """Fails as the request's body asks for."""
    return _SAID[say(event, context)["do"]](event, context)


def echo_as_body(event: Event, context: Any) -> Event:
    """`echo`, in a response that both payload formats know."""
    return {"statusCode": 200, "body": json.dumps(echo(event, context))}


def told(event: Event, context: Any) -> Any:
    """Does what the event says, for events that are no HTTP requests."""
    kind = event.get("do", "echo")
    if kind != "echo":
        return _TOLD[kind](event, context)
    return {"event": event, "arn": context.invoked_function_arn, "request_id": context.aws_request_id}


def one_line(event: Event, context: Any) -> Event:
    """Writes a line."""
    print("first line")
    return {}


def unserializable(event: Event, context: Any) -> Any:
    """Returns what JSON cannot hold."""
    return {1, 2}


def overrun(event: Event, context: Any) -> Any:
    """Takes longer than any timeout."""
    time.sleep(600)


def told_or_gate(event: Event, context: Any) -> Event:
    """Waits where the path is `/gate`, and does nothing anywhere else."""
    return gate(event, context) if event.get("rawPath") == "/gate" else {}


def label_markup(event: Event, context: Any) -> Event:
    """A classifier whose label is HTML."""
    label = "<img src=x onerror=alert(1)>"
    answer = {"label": label, "probability": 0.5, "top": [{"label": label, "probability": 0.5}]}
    return {"start": "cold", "predictions": [{"index": 0, "heads": {"auto": answer, "mlp": answer}}]}


def log_stages(event: Event, context: Any) -> Event:
    """Logs a line about the request, as the predict function does, with a stage that is named like HTML."""
    spans = [["cache", 0.0, 0.0], ["<img src=x>", 0.0, 0.0], ["cache", 0.0, 0.0]]
    times: Event = {"duration_ms": 0.0, "stages_ms": {}, "total_ms": 0.0, "spans_ms": spans}
    print(json.dumps(times | {"trace_id": "ab" * 16}))
    return {}


def explain(event: Event, context: Any) -> Event:
    """A classifier that explains one head, where it is asked to, and has no time for the other."""
    asked = json.loads(event["body"])
    heads: dict[str, Any] = {
        name: {"label": "news", "probability": 0.9, "top": [{"label": "news", "probability": 0.9}]}
        for name in ("auto", "mlp")
    }
    if asked.get("explain"):
        words = [{"start": 11, "end": 17, "weight": 2.5}, {"start": 2, "end": 10, "weight": 0.5}]
        heads["auto"]["explanation"] = {"method": "exact", "words": words, "rest": -1.25}
        heads["mlp"] |= {"explanation": None, "unexplained": "time"}
    return {"start": "warm", "predictions": [{"index": 0, "heads": heads}]}


def unsure(event: Event, context: Any) -> Event:
    """A classifier with long labels that is not sure of any."""
    label = "questions about a contract that has been cancelled and renewed"
    top = [{"label": label, "probability": 0.4}, {"label": f"no {label}", "probability": 0.25}]
    head = {"label": label, "probability": 0.4, "top": top}
    version = "sha256:" + "0123456789abcdef" * 4
    predictions = [{"index": 0, "heads": {"auto": head, "mlp": head}}]
    return {"model": "contracts", "version": version, "start": "warm", "predictions": predictions}


def two_heads(event: Event, context: Any) -> Event:
    """A classifier that has one head beside `auto`, and refuses the others."""
    had = ("auto", "mlp")
    if event["rawPath"] == "/v1/models":
        return {"data": [{"id": "encoder"}, {"id": "few", "default_head": "auto", "heads": {"mlp": {}}}]}
    asked = json.loads(event["body"])["heads"]
    if set(asked) - set(had):
        return {"statusCode": 422, "body": json.dumps({"detail": "no such head"})}
    top = [{"label": "yes", "probability": 0.9}]
    heads = {name: {"label": "yes", "probability": 0.9, "top": top} for name in asked}
    return {"start": "warm", "predictions": [{"index": 0, "heads": heads}]}


def refuse(event: Event, context: Any) -> Event:
    """Knows no route."""
    body = json.dumps({"detail": "no such route"})
    return {"statusCode": 404, "headers": {"content-type": "application/json"}, "body": body}


_TOLD = {
    "fail": fail,
    "leave": leave,
    "speak": one_line,
    "gate": gate,
    "unserializable": unserializable,
    "overrun": overrun,
}

_SAID = {"raise": fail, "leave": leave, "overrun": overrun, "malformed": malformed}

_ROUTES = {
    "/echo": echo,
    "/gate": gate,
    "/fail": fail,
    "/leave": leave,
    "/big": big,
    "/large": large,
    "/shaped": shaped,
    "/malformed": malformed,
    "/speak": speak,
}

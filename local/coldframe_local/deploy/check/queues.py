"""Rules of `coldframe check` about SQS queues that invoke functions.

AWS takes each of these and lets messages be answered twice, be repeated for days, or be lost.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html and
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html, read 2026-11-22
"""

from collections.abc import Iterator

from coldframe.capacity import limits as quotas
from coldframe_local.deploy.check.deployment import Deployment, Finding, Properties, number_of, references
from coldframe_local.emulator.template.syntax.ref_names import EVENT_SOURCE_MAPPING, QUEUE

_VISIBILITY_S = 30  # SQS's own default
_ALONE = 10  # a larger batch needs a window


def visibility_under_timeout(deployment: Deployment) -> Iterator[Finding]:
    """Messages that are received again while the function may still work on them: the clock starts first."""
    for name, mapping, queue in _mappings(deployment):
        function = next(references(mapping.get("FunctionName")), "")
        function = deployment.function_of(function) if function in deployment.aliases else function
        if function not in deployment.functions:
            continue
        timeout_s = number_of(deployment.functions[function].get("Timeout"), quotas.DEFAULT_TIMEOUT.value)
        window_s = number_of(mapping.get("MaximumBatchingWindowInSeconds"), 0)
        properties = deployment.stack.resources[queue].get("Properties", {})
        # A value that is known only once it is deployed is not judged.
        visibility_s = number_of(properties.get("VisibilityTimeout", _VISIBILITY_S), window_s + timeout_s)
        if visibility_s < window_s + timeout_s:
            yield Finding(
                "VisibilityUnderTimeout",
                queue,
                f"VisibilityTimeout is {visibility_s} s, and {name} may take {window_s + timeout_s} s:"
                f" a window of {window_s} s and {function}'s timeout of {timeout_s} s",
                f"Set VisibilityTimeout to {window_s + 6 * timeout_s}, six timeouts as AWS advises",
            )


def missing_partial_failures(deployment: Deployment) -> Iterator[Finding]:
    """A batch that is repeated as a whole, or deleted as a whole, when one message of it failed."""
    for name, mapping, _ in _mappings(deployment):
        alone = number_of(mapping.get("BatchSize"), _ALONE) == 1
        if not alone and "ReportBatchItemFailures" not in mapping.get("FunctionResponseTypes", []):
            yield Finding(
                "MissingPartialFailures",
                name,
                "a message that fails makes its whole batch fail: all of it is answered again",
                "Add `FunctionResponseTypes: [ReportBatchItemFailures]`, and answer with `batchItemFailures`",
            )


def missing_dead_letter_queue(deployment: Deployment) -> Iterator[Finding]:
    """A message that fails each time, and is received again until it expires, unseen."""
    for queue in dict.fromkeys(queue for _, _, queue in _mappings(deployment)):
        properties = deployment.stack.resources[queue].get("Properties", {})
        if not properties.get("RedrivePolicy"):
            yield Finding(
                "MissingDeadLetterQueue",
                queue,
                "it invokes a function and has no RedrivePolicy: a message that fails is tried until it"
                " expires, and nobody gets to see it",
                "Add a queue, and `RedrivePolicy: {deadLetterTargetArn: …, maxReceiveCount: 5}`",
            )


def pollers_out_of_order(deployment: Deployment) -> Iterator[Finding]:
    """Provisioned pollers beside a limit of concurrency, which exclude each other, or outside their range."""
    for name, mapping, _ in _mappings(deployment):
        pollers = mapping.get("ProvisionedPollerConfig")
        if not pollers:
            continue
        low, kept, high = (of.value for of in (quotas.LEAST_POLLERS, quotas.KEPT_POLLERS, quotas.POLLERS))
        least = number_of(pollers.get("MinimumPollers"), low)
        most = number_of(pollers.get("MaximumPollers"), kept)
        if "MaximumConcurrency" in mapping.get("ScalingConfig", {}):
            problem = "ProvisionedPollerConfig and ScalingConfig.MaximumConcurrency exclude each other"
            yield Finding("PollersOutOfOrder", name, problem, "Leave one out")
        elif not low <= least <= min(most, kept) or most > high:
            problem = f"MinimumPollers is {least} and MaximumPollers {most}"
            fix = f"Set {low} to {kept} and, not below that, up to {high}"
            yield Finding("PollersOutOfOrder", name, problem, fix)


def _mappings(deployment: Deployment) -> Iterator[tuple[str, Properties, str]]:
    """(mapping, its properties, queue) of each queue of the stack that invokes a function."""
    for name, properties in deployment.stack.of_type(EVENT_SOURCE_MAPPING).items():
        queue = next(references(properties.get("EventSourceArn")), "")
        if deployment.stack.resources.get(queue, {}).get("Type") == QUEUE:
            yield name, properties, queue

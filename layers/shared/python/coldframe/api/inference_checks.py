"""Checks of a request of the Open Inference Protocol: its inputs, its outputs, and unsupported parameters."""

from collections.abc import Mapping, Sequence

from coldframe.api.inference_schemas import InferRequest, RequestedOutput
from coldframe.api.tensors import InputTensor
from coldframe.errors import Invalid, echo


def wanted_outputs(request: InferRequest, names: Sequence[str]) -> dict[str, bool]:
    """Outputs to send, in the order of the request, and whether each is binary. Raises Invalid."""
    default = bool(request.parameters and request.parameters.binary_data_output)
    if not request.outputs:
        return dict.fromkeys(names, default)
    outputs: dict[str, bool] = {}
    for output in request.outputs:
        if output.name not in names:
            raise Invalid(
                f"{echo(output.name)} is not an output of this model. Request one of: {', '.join(names)}."
            )
        if output.name in outputs:
            raise Invalid(f"Output {echo(output.name)} is requested twice. Request each output once.")
        outputs[output.name] = _is_binary(output, default)
    return outputs


def _is_binary(output: RequestedOutput, default: bool) -> bool:
    binary = output.parameters.binary_data if output.parameters else None
    return default if binary is None else binary


def check_supported(request: InferRequest) -> None:
    """Raises Invalid for parameters that would change the answer and are not supported."""
    of_inputs = [tensor.parameters for tensor in request.inputs if tensor.parameters]
    of_outputs = [output.parameters for output in request.outputs or [] if output.parameters]
    regions = [parameters.shared_memory_region for parameters in of_inputs]
    regions += [parameters.shared_memory_region for parameters in of_outputs]
    if any(region is not None for region in regions):
        raise Invalid("Shared memory is not supported. Send tensors as `data` or as binary data.")
    if any(parameters.classification for parameters in of_outputs):
        raise Invalid(
            "`classification` of outputs is not supported. Request `label` from a head's model instead."
        )


def only_input(inputs: Mapping[str, InputTensor], names: Sequence[str]) -> InputTensor:
    """The one input of a request. Raises Invalid, which lists the possible inputs."""
    expected = f"Send exactly one: {' or '.join(names)}."
    for name in inputs:
        if name not in names:
            raise Invalid(f"{echo(name)} is not an input of this model. {expected}")
    if len(inputs) != 1:
        raise Invalid(f"Found {len(inputs)} inputs. {expected}")
    return next(iter(inputs.values()))

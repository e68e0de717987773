"""What a request of the Open Inference Protocol asks for, and whether a model has it."""

from collections.abc import Mapping, Sequence

from coldframe.api.inference_schemas import InferRequest, RequestedOutput
from coldframe.api.tensors import InputTensor
from coldframe.errors import Invalid, echo


def wanted_outputs(asked: InferRequest, known: Sequence[str]) -> dict[str, bool]:
    """Outputs to send, in the order asked for, and whether as binary data. Raises Invalid."""
    default = bool(asked.parameters and asked.parameters.binary_data_output)
    if not asked.outputs:
        return dict.fromkeys(known, default)
    wanted: dict[str, bool] = {}
    for output in asked.outputs:
        if output.name not in known:
            raise Invalid(f"{echo(output.name)} is not an output of this model. Outputs: {', '.join(known)}.")
        if output.name in wanted:
            raise Invalid(f"Output {echo(output.name)} is asked for twice. Ask for each output once.")
        wanted[output.name] = _is_binary(output, default)
    return wanted


def _is_binary(output: RequestedOutput, default: bool) -> bool:
    asked = output.parameters.binary_data if output.parameters else None
    return default if asked is None else asked


def check_supported(asked: InferRequest) -> None:
    """Raises Invalid for what would change the answer and is not done here."""
    of_inputs = [tensor.parameters for tensor in asked.inputs if tensor.parameters]
    of_outputs = [output.parameters for output in asked.outputs or [] if output.parameters]
    regions = [given.shared_memory_region for given in of_inputs]
    regions += [given.shared_memory_region for given in of_outputs]
    if any(region is not None for region in regions):
        raise Invalid("Shared memory is not supported. Send tensors as `data` or as binary data.")
    if any(given.classification for given in of_outputs):
        raise Invalid("`classification` of outputs is not supported. Ask a head's model for `label`.")


def only_input(inputs: Mapping[str, InputTensor], known: Sequence[str]) -> InputTensor:
    """The one input that is given. Raises Invalid, which says which ones there are."""
    expected = f"Expected exactly one: {' or '.join(known)}."
    for name in inputs:
        if name not in known:
            raise Invalid(f"{echo(name)} is not an input of this model. {expected}")
    if len(inputs) != 1:
        raise Invalid(f"Found {len(inputs)} inputs. {expected}")
    return next(iter(inputs.values()))

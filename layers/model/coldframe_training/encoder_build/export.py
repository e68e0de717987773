"""Original weights to an fp32 ONNX graph, by Optimum's exporter."""

import warnings
from pathlib import Path

import onnx
import transformers
from onnx import GraphProto
from optimum.exporters.onnx import export
from safetensors import SafetensorError
from transformers import AutoModel, PreTrainedModel

from coldframe_training.encoder_build.encoder_folder import Pooling
from coldframe_training.encoder_build.graph import LeanEncoder, LeanOnnxConfig
from coldframe_training.files.errors import EncoderRefused

_OPSET = 20  # the first with Gelu as one operation
_MOST_BYTES = 2**31 - 2**24  # of an ONNX file, which is one protocol buffer, with room for its nodes


def load_original(weights: Path) -> PreTrainedModel:
    """The original model, as published. Raises EncoderRefused for weights that are not config.json's."""
    transformers.logging.set_verbosity_error()
    try:
        model, report = AutoModel.from_pretrained(
            weights, attn_implementation="eager", use_safetensors=True, output_loading_info=True
        )
    except (OSError, RuntimeError, ValueError, SafetensorError) as exc:
        reason = str(exc).strip().split("\n")[0]
        raise EncoderRefused(
            f"transformers cannot load the model in {weights}: {reason} Expected config.json and"
            " model.safetensors of one model, both whole."
        ) from exc
    if missing := sorted(name for name in report["missing_keys"] if not name.startswith("pooler.")):
        raise EncoderRefused(
            f"{weights}/model.safetensors lacks {len(missing)} of the weights that config.json announces,"
            f" {missing[0]} first. Expected all of them: take the two files of one model."
        )
    return model.eval()


def export_fp32(weights: Path, target: Path, layers: int | None = None, pooling: Pooling = "mean") -> None:
    """Writes `LeanEncoder` with the original weights to `target`. layers: number of first layers to write.

    Raises EncoderRefused for an encoder that is too large.
    """
    original = load_original(weights)
    lean = LeanEncoder(original, layers, pooling).eval()
    size = sum(4 * weight.numel() for weight in lean.parameters())
    if size > _MOST_BYTES:
        raise EncoderRefused(
            f"The export does not work for this encoder: it has {size / 1e9:.2f} GB of weights in fp32."
            f" Expected {_MOST_BYTES / 1e9:.2f} GB at most: take a smaller one of its family."
        )
    with warnings.catch_warnings():
        # Optimum exports through TorchScript, which torch announces to retire.
        warnings.simplefilter("ignore")
        config = LeanOnnxConfig(original.config, task="feature-extraction")
        export(lean, config, target, opset=_OPSET)
    model = onnx.load(target)
    if _drop_copies(model.graph):
        onnx.save(model, target)


def _drop_copies(graph: GraphProto) -> bool:
    """Lets whoever reads a copy of a constant read the constant. Whether there was any copy.

    The exporter writes equal weights once, biases of zero for instance, and copies them by Identity.
    """
    constants = {tensor.name for tensor in graph.initializer}
    copies = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Identity" and node.input[0] in constants
    }
    for node in graph.node:
        node.input[:] = [copies.get(tensor, tensor) for tensor in node.input]
    for node in [node for node in graph.node if node.output[0] in copies]:
        graph.node.remove(node)
    return bool(copies)

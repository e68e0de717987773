"""Names of the files of an encoder built for a GPU, besides those shared with the CPU's encoder."""

PACKED = "packed.onnx"  # removes padding before it computes; uses CUDA's own operations
PADDED = "padded.onnx"  # computes padding too; runs everywhere
WEIGHTS = "weights.bin"  # shared by both graphs
MIN_COSINE = 0.999
"""Least cosine of a golden text's embedding in fp16 to its embedding in fp32."""


def gpu_encoder(name: str) -> str:
    """The name of the folder with the encoder `name` built for a GPU."""
    return f"{name}-gpu"

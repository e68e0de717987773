"""The files of an encoder built for a GPU, beside those that it shares with the one for CPUs."""

PACKED = "packed.onnx"  # removes padding before it computes; operations of CUDA alone
PADDED = "padded.onnx"  # computes padding too; runs everywhere
WEIGHTS = "weights.bin"  # of both
MIN_COSINE = 0.999
"""Of a golden text's embedding in fp16 to the one in fp32, at least."""


def gpu_encoder(name: str) -> str:
    """The name of the folder where the encoder `name` is built for a GPU."""
    return f"{name}-gpu"

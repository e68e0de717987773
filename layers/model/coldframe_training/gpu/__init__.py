"""Encoders for NVIDIA GPUs: fused graphs in fp16, and the check against the CPU's."""

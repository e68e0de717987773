"""Encoders from weights: tokenizer files, graph, quantization and golden vectors."""

"""Graphs of ONNX and what runs them: onnxruntime's C library, or its Python binding where there is none."""

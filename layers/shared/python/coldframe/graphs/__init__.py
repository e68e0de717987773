"""ONNX graphs and the libraries that run them: onnxruntime's C library, or else its Python binding."""

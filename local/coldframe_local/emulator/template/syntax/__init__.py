"""Template syntax: documents, intrinsic functions, parameters, references and nested applications."""

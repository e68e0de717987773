"""Syntax of templates: documents, intrinsic functions, parameters, references and nested applications."""

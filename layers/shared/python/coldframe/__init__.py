"""Coldframe: text classification on AWS Lambda with its cold starts under control."""

__version__ = "0.1.0"

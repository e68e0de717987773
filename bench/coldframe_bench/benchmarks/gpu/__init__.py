"""Passes on a GPU: in one process, over HTTP, and the device's own bound."""

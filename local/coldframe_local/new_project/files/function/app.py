"""The function: Coldframe answers each event. Code of your own goes around `handler`."""

from coldframe_functions.predict.app import handler

__all__ = ["handler"]

"""Scheduling: which rows share the next pass of a device, and which are refused, as rules over moments.

No clock, no thread, no model: `coldframe.serving` adds them, and tests add virtual time.
"""

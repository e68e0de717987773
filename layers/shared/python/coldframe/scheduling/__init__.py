"""Scheduling: which rows share a device's next pass, and which are refused, as rules over moments.

No clock, no thread, no model: `coldframe.serving` adds them, and tests add virtual time.
"""

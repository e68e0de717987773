"""What runs next on a device that many requests share, and what is refused: pure rules over moments.

No clock, no thread, no model: `coldframe.serving` brings these, tests bring virtual time.
"""

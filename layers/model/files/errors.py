"""Why a folder cannot become an encoder."""


class EncoderRefused(Exception):
    """What was found, what was expected, and what to do."""

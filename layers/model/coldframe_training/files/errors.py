"""Why a folder cannot become an encoder."""


class EncoderRefused(Exception):
    """Errors of training: each names what was found, what was expected, and what to do."""

"""Commands of `coldframe bench`: measurements to raw files, and figures that are only printed."""

"""A template's functions: code, image, settings and events."""

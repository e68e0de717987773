"""Functions of a template: code, image, settings and events."""

"""Lambda service: types, settings and reports that all of its parts share."""

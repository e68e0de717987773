"""Measurements of coldframe: `coldframe bench`, its peers and its published raw files."""

"""Coldframe's measurements: `coldframe bench`, its peers and its published raw files."""

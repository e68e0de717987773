"""A report's HTML: sections, plots and tables."""

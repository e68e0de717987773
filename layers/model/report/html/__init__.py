"""HTML of a report: sections, plots and tables."""

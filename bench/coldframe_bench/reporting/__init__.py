"""Reports: raw files as figures, plots and tables for the documents."""

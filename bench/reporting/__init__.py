"""Reports: raw files as figures, plots and tables of the documents."""

"""Records: raw files, their tables, quantiles and budgets."""

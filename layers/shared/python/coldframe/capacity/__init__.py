"""Lambda's rules: admission, limits, prices and arrivals, by the standard library alone."""

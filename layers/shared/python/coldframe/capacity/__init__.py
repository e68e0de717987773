"""Rules of Lambda: admission, limits, prices and arrivals, by the standard library alone."""

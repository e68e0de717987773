"""Console of the emulator: a page in the browser, and the endpoints that it calls."""

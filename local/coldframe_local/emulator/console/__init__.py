"""The emulator's console: a page in the browser, and the endpoints that it calls."""

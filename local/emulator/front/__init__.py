"""Port of the emulator: the server, the routes, and everything's start and end."""

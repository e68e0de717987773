"""The emulator's port: the server, the routes, and everything's start and end."""

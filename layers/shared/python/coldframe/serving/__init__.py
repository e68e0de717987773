"""What lets requests of many threads share the passes of an encoder: a server's, never a function's."""

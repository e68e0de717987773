"""Commands of `coldframe`, a module for each group: options in, one call, lines out."""

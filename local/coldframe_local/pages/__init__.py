"""Pages of HTML that need no script and no other file: their style, their templates and their plots."""

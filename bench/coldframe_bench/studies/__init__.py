"""Studies of the example model and its encoder, run with the build environment: their tables are in docs/."""

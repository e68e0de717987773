"""Parts that several groups of tests share: emulators, servers, encoders, tables and small functions."""

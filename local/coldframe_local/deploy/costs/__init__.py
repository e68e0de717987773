"""Monthly costs of the server's platforms beside Lambda, and the rates from which each pays."""

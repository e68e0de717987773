"""Commands that build encoders and train models, in an environment with torch."""

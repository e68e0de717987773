"""Training sets: tables, checks of their rows, splits, and texts with their classes."""

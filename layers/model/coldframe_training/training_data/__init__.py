"""Training sets: tables, row checks, splits, and texts with their classes."""

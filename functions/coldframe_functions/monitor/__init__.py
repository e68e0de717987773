"""Function that watches the answers for drift and for wrong answers, by a schedule."""

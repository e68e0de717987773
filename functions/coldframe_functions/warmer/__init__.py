"""Function that keeps environments warm, by a schedule."""

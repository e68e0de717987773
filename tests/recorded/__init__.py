"""Answers of AWS's own software, recorded, and how."""

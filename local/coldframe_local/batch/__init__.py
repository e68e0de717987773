"""Batch work: whole tables and whole objects in S3."""

"""Releases: sets of models in a folder or in S3, which running servers take over."""

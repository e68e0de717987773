"""Function that processes jobs: queue messages, S3 events and the sweep."""

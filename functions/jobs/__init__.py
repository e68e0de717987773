"""Function that processes jobs: messages of queues, S3 events and the sweep."""

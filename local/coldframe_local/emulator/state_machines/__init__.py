"""State machines with a Distributed Map, run on this machine against a Lambda API and S3."""

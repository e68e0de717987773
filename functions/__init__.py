"""Handlers of Lambda functions: AWS events in, calls of coldframe, AWS answers out."""

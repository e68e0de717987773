"""Lambda functions' handlers: AWS events in, coldframe called, AWS answers out."""

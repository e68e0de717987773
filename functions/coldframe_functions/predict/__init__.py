"""Function that predicts: AWS events in, AWS answers out."""

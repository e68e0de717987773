"""Routes, statuses and pages of the HTTP API, for every platform; no AWS and no model."""

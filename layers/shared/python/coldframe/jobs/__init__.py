"""Jobs: states, store, splitting, worker and notifications of work that can wait."""

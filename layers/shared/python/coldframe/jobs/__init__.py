"""Jobs: states, store, splitting, worker and notifications for work that can wait."""

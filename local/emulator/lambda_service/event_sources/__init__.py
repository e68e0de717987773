"""Event sources and destinations: queues, schedules and asynchronous events."""

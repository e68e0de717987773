"""Event sources and destinations: queues, schedules, log lines and asynchronous events."""

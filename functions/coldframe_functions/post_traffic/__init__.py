"""Hook after a deployment: old versions are deleted."""

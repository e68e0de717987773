"""Hook before a deployment gets traffic: the new version answers golden texts."""

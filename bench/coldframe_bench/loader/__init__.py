"""Load generators: an open loop, invocations, and the verdict on a run."""

"""Platforms for the server: manifests for Kubernetes, Knative, KServe, Compose and ECS, and their costs."""

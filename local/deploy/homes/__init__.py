"""Homes of the server: manifests of Kubernetes, Knative, KServe, Compose and ECS, and what each costs."""

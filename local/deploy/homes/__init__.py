"""Where the server runs: manifests of Kubernetes, Knative, KServe, Compose and ECS, from one set of facts."""

"""A template's APIs: routes, CORS and throttling."""

"""APIs of a template: routes, CORS and throttling."""

"""Lambda API: invocations, functions and concurrency, as boto3 calls them."""

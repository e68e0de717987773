"""Models: manifests, tokenizers, estimator, encoder and heads, from plain files."""

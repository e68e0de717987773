"""SQL functions: calls from databases, their statements, and the estimator as tables."""

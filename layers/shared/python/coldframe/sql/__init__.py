"""SQL functions: calls of databases, their statements, and the estimator as tables."""

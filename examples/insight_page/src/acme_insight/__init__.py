"""A page of Mycelia Insight that ranks runs."""

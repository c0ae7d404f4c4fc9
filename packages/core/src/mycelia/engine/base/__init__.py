"""What every part stands on: dtypes, settings, errors, log, plugins."""

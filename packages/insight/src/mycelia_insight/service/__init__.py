"""The web service: settings, the process that runs it, and what it answers."""

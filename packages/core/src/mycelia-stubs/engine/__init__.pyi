"""The stub of the native modules; everything else of the engine is typed by its sources."""

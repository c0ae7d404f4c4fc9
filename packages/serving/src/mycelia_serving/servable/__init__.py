"""What a servable is: its folder, its versions, and what its `servable_config.py` declares."""

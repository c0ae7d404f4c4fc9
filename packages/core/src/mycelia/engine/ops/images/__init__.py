"""Images and the boxes in them: resizing, sampling, colours, detection."""

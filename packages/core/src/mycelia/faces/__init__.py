"""Spellings of other libraries and of MindSpore's own name spaces, thin over the engine and the parts."""

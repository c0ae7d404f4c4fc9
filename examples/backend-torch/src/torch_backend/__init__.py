"""Parts of graphs compiled by PyTorch."""

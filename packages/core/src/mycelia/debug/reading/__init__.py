"""Reading dumps, ours and MindSpore's: folders, graphs, tensors, and what went wrong in them."""

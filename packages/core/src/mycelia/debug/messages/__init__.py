"""What the debugger's service and dumps call graphs and tensors by: MindSpore's messages."""

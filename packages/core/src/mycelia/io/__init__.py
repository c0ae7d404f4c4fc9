"""Files: checkpoints, MindIR, safetensors."""

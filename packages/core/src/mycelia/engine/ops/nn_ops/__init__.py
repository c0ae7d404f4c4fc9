"""What layers, losses and optimizers of networks compute: convolutions, pools, norms, cells, steps."""

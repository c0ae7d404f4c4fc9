"""Products, factorizations and equations of dense matrices, and the functions of sparse ones."""

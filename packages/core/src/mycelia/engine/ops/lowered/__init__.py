"""Forms that only the compiler gives ops: channels last, packed, fused. No user calls them."""

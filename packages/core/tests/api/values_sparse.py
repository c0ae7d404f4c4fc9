"""Functions of sparse tensors: calls and what they give; see test_values.py."""

CASES = """
ops.coo_acos(coo(u))
    float32[6] 1.3694 1.1593 0.45103 0.9273 1.4706 1.0472
ops.coo_asin(coo(u))
    float32[6] 0.20136 0.41152 1.1198 0.6435 0.10017 0.5236
ops.coo_asinh(coo(u))
    float32[6] 0.19869 0.39004 0.80887 0.56882 0.099834 0.48121
ops.coo_atan(coo(u))
    float32[6] 0.1974 0.38051 0.73282 0.54042 0.099669 0.46365
ops.coo_atanh(coo(u))
    float32[6] 0.20273 0.42365 1.4722 0.69315 0.10034 0.54931
ops.coo_ceil(coo(u))
    float32[6] 1 1 1 1 1 1
ops.coo_cos(coo(u))
    float32[6] 0.98007 0.92106 0.62161 0.82534 0.995 0.87758
ops.coo_cosh(coo(u))
    float32[6] 1.0201 1.0811 1.4331 1.1855 1.005 1.1276
ops.coo_exp(coo(u))
    float32[6] 1.2214 1.4918 2.4596 1.8221 1.1052 1.6487
ops.coo_expm1(coo(u))
    float32[6] 0.2214 0.49182 1.4596 0.82212 0.10517 0.64872
ops.coo_floor(coo(u))
    float32[6] 0 0 0 0 0 0
ops.coo_inv(coo(u))
    float32[6] 5 2.5 1.1111 1.6667 10 2
ops.coo_isfinite(coo(u))
    bool[6] 1 1 1 1 1 1
ops.coo_isinf(coo(u))
    bool[6] 0 0 0 0 0 0
ops.coo_isnan(coo(u))
    bool[6] 0 0 0 0 0 0
ops.coo_log(coo(u))
    float32[6] -1.6094 -0.91629 -0.10536 -0.51083 -2.3026 -0.69315
ops.coo_log1p(coo(u))
    float32[6] 0.18232 0.33647 0.64185 0.47 0.09531 0.40547
ops.coo_neg(coo(u))
    float32[6] -0.2 -0.4 -0.9 -0.6 -0.1 -0.5
ops.coo_relu(coo(u))
    float32[6] 0.2 0.4 0.9 0.6 0.1 0.5
ops.coo_relu6(coo(u))
    float32[6] 0.2 0.4 0.9 0.6 0.1 0.5
ops.coo_round(coo(u))
    float32[6] 0 0 1 1 0 0
ops.coo_sigmoid(coo(u))
    float32[6] 0.54983 0.59869 0.71095 0.64566 0.52498 0.62246
ops.coo_sin(coo(u))
    float32[6] 0.19867 0.38942 0.78333 0.56464 0.099833 0.47943
ops.coo_sinh(coo(u))
    float32[6] 0.20134 0.41075 1.0265 0.63665 0.10017 0.5211
ops.coo_softsign(coo(u))
    float32[6] 0.16667 0.28571 0.47368 0.375 0.090909 0.33333
ops.coo_sqrt(coo(u))
    float32[6] 0.44721 0.63246 0.94868 0.7746 0.31623 0.70711
ops.coo_tan(coo(u))
    float32[6] 0.20271 0.42279 1.2602 0.68414 0.10033 0.5463
ops.coo_tanh(coo(u))
    float32[6] 0.19738 0.37995 0.7163 0.53705 0.099668 0.46212
ops.coo_acosh(coo(p))
    float32[6] 0.96242 1.317 1.7627 0.69315 2.0634 1.5668
ops.csr_acos(csr(u))
    float32[6] 1.3694 1.1593 0.45103 0.9273 1.4706 1.0472
ops.csr_asin(csr(u))
    float32[6] 0.20136 0.41152 1.1198 0.6435 0.10017 0.5236
ops.csr_asinh(csr(u))
    float32[6] 0.19869 0.39004 0.80887 0.56882 0.099834 0.48121
ops.csr_atan(csr(u))
    float32[6] 0.1974 0.38051 0.73282 0.54042 0.099669 0.46365
ops.csr_atanh(csr(u))
    float32[6] 0.20273 0.42365 1.4722 0.69315 0.10034 0.54931
ops.csr_ceil(csr(u))
    float32[6] 1 1 1 1 1 1
ops.csr_cos(csr(u))
    float32[6] 0.98007 0.92106 0.62161 0.82534 0.995 0.87758
ops.csr_cosh(csr(u))
    float32[6] 1.0201 1.0811 1.4331 1.1855 1.005 1.1276
ops.csr_exp(csr(u))
    float32[6] 1.2214 1.4918 2.4596 1.8221 1.1052 1.6487
ops.csr_expm1(csr(u))
    float32[6] 0.2214 0.49182 1.4596 0.82212 0.10517 0.64872
ops.csr_floor(csr(u))
    float32[6] 0 0 0 0 0 0
ops.csr_inv(csr(u))
    float32[6] 5 2.5 1.1111 1.6667 10 2
ops.csr_isfinite(csr(u))
    bool[6] 1 1 1 1 1 1
ops.csr_isinf(csr(u))
    bool[6] 0 0 0 0 0 0
ops.csr_isnan(csr(u))
    bool[6] 0 0 0 0 0 0
ops.csr_log(csr(u))
    float32[6] -1.6094 -0.91629 -0.10536 -0.51083 -2.3026 -0.69315
ops.csr_log1p(csr(u))
    float32[6] 0.18232 0.33647 0.64185 0.47 0.09531 0.40547
ops.csr_neg(csr(u))
    float32[6] -0.2 -0.4 -0.9 -0.6 -0.1 -0.5
ops.csr_relu(csr(u))
    float32[6] 0.2 0.4 0.9 0.6 0.1 0.5
ops.csr_relu6(csr(u))
    float32[6] 0.2 0.4 0.9 0.6 0.1 0.5
ops.csr_round(csr(u))
    float32[6] 0 0 1 1 0 0
ops.csr_sigmoid(csr(u))
    float32[6] 0.54983 0.59869 0.71095 0.64566 0.52498 0.62246
ops.csr_sin(csr(u))
    float32[6] 0.19867 0.38942 0.78333 0.56464 0.099833 0.47943
ops.csr_sinh(csr(u))
    float32[6] 0.20134 0.41075 1.0265 0.63665 0.10017 0.5211
ops.csr_softsign(csr(u))
    float32[6] 0.16667 0.28571 0.47368 0.375 0.090909 0.33333
ops.csr_sqrt(csr(u))
    float32[6] 0.44721 0.63246 0.94868 0.7746 0.31623 0.70711
ops.csr_tan(csr(u))
    float32[6] 0.20271 0.42279 1.2602 0.68414 0.10033 0.5463
ops.csr_tanh(csr(u))
    float32[6] 0.19738 0.37995 0.7163 0.53705 0.099668 0.46212
ops.csr_square(csr(u))
    float32[6] 0.04 0.16 0.81 0.36 0.01 0.25
ops.csr_acosh(csr(p))
    float32[6] 0.96242 1.317 1.7627 0.69315 2.0634 1.5668
"""

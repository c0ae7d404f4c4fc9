/* One number of many: of axes that lie in up to two places, outer x [first] x inner x [second]. */

typedef struct {
    int32_t outer, first, inner, second;
    float scale;
} micro_reduction;

/* For f32, f64: The sum, times the scale. */
void micro_reduce_sum_SUFFIX(const micro_reduction *p, const TYPE *x, TYPE *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            TYPE sum = 0;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) sum += x[(a * p->inner + i) * p->second + b];
            *y++ = sum * p->scale;
        }
}

/* For u8, i8, i32, i64: The sum in 64 bits. */
void micro_reduce_sum_SUFFIX(const micro_reduction *p, const TYPE *x, int64_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            uint64_t sum = 0;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) sum += (uint64_t)x[(a * p->inner + i) * p->second + b];
            *y++ = (int64_t)sum;
        }
}

/* For f32, f64, i32, i64: The largest, or what is not a number. */
void micro_reduce_max_SUFFIX(const micro_reduction *p, const TYPE *x, TYPE *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            TYPE found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const TYPE v = x[(a * p->inner + i) * p->second + b];
                    if (v > found || IS_NAN(v)) found = v;
                }
            *y++ = found;
        }
}

/* For f32, f64, i32, i64, u8: The smallest, or what is not a number; of truths whether all are true. */
void micro_reduce_min_SUFFIX(const micro_reduction *p, const TYPE *x, TYPE *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            TYPE found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const TYPE v = x[(a * p->inner + i) * p->second + b];
                    if (v < found || IS_NAN(v)) found = v;
                }
            *y++ = found;
        }
}

void micro_reduce_prod_f32(const micro_reduction *p, const float *x, float *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            float found = 1.0f;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) found *= x[(a * p->inner + i) * p->second + b];
            *y++ = found;
        }
}

/* The root of the sum of the squares. */
void micro_reduce_norm_f32(const micro_reduction *p, const float *x, float *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            float sum = 0.0f;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const float v = x[(a * p->inner + i) * p->second + b];
                    sum += v * v;
                }
            *y++ = sqrtf(sum);
        }
}

/* One number of many: of axes that lie in up to two places, outer x [first] x inner x [second]. */

typedef struct {
    int32_t outer, first, inner, second;
    float scale;
} micro_reduction;

void micro_reduce_sum_f32(const micro_reduction *p, const float *x, float *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            float sum = 0.0f;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) sum += x[(a * p->inner + i) * p->second + b];
            *y++ = sum * p->scale;
        }
}

void micro_reduce_max_f32(const micro_reduction *p, const float *x, float *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            float found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const float v = x[(a * p->inner + i) * p->second + b];
                    if (v > found || v != v) found = v;
                }
            *y++ = found;
        }
}

void micro_reduce_max_i32(const micro_reduction *p, const int32_t *x, int32_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int32_t found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int32_t v = x[(a * p->inner + i) * p->second + b];
                    if (v > found) found = v;
                }
            *y++ = found;
        }
}

void micro_reduce_max_i64(const micro_reduction *p, const int64_t *x, int64_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int64_t found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int64_t v = x[(a * p->inner + i) * p->second + b];
                    if (v > found) found = v;
                }
            *y++ = found;
        }
}

void micro_reduce_min_f32(const micro_reduction *p, const float *x, float *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            float found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const float v = x[(a * p->inner + i) * p->second + b];
                    if (v < found || v != v) found = v;
                }
            *y++ = found;
        }
}

void micro_reduce_min_i32(const micro_reduction *p, const int32_t *x, int32_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int32_t found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int32_t v = x[(a * p->inner + i) * p->second + b];
                    if (v < found) found = v;
                }
            *y++ = found;
        }
}

void micro_reduce_min_i64(const micro_reduction *p, const int64_t *x, int64_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int64_t found = x[i * p->second];
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int64_t v = x[(a * p->inner + i) * p->second + b];
                    if (v < found) found = v;
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
                for (b = 0; b < p->second; b++) {
                    const float v = x[(a * p->inner + i) * p->second + b];
                    found *= v;
                }
            *y++ = found;
        }
}

void micro_reduce_prod_i32(const micro_reduction *p, const int32_t *x, int32_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int32_t found = 1;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int32_t v = x[(a * p->inner + i) * p->second + b];
                    found = (int32_t)((uint32_t)found * (uint32_t)v);
                }
            *y++ = found;
        }
}

void micro_reduce_prod_i64(const micro_reduction *p, const int64_t *x, int64_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int64_t found = 1;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int64_t v = x[(a * p->inner + i) * p->second + b];
                    found = (int64_t)((uint64_t)found * (uint64_t)v);
                }
            *y++ = found;
        }
}

void micro_reduce_sum_i32(const micro_reduction *p, const int32_t *x, int32_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int32_t found = 0;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int32_t v = x[(a * p->inner + i) * p->second + b];
                    found = (int32_t)((uint32_t)found + (uint32_t)v);
                }
            *y++ = found;
        }
}

void micro_reduce_sum_i64(const micro_reduction *p, const int64_t *x, int64_t *y)
{
    int32_t o, i, a, b;
    for (o = 0; o < p->outer; o++, x += p->first * p->inner * p->second)
        for (i = 0; i < p->inner; i++) {
            int64_t found = 0;
            for (a = 0; a < p->first; a++)
                for (b = 0; b < p->second; b++) {
                    const int64_t v = x[(a * p->inner + i) * p->second + b];
                    found = (int64_t)((uint64_t)found + (uint64_t)v);
                }
            *y++ = found;
        }
}

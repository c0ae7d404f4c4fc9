/* Elements of a row by their order; those of the row are `inner` apart. */

typedef struct {
    int32_t outer, size, inner;
    int32_t count, largest;
} micro_picking;

/* For f32, f64, i32, i64: The first `count` of the row in order, the largest or the smallest first, and their places. What is not a number is larger
 * than all numbers; equal ones stay in their order. */
void micro_pick_SUFFIX(const micro_picking *p, const TYPE *x, TYPE *y, int32_t *places)
{
    int32_t n, i, k, m;
    for (n = 0; n < p->outer; n++, x += p->size * p->inner, y += p->count * p->inner, places += p->count * p->inner)
        for (i = 0; i < p->inner; i++)
            for (k = 0; k < p->size; k++) {
                const TYPE v = x[k * p->inner + i];
                for (m = k < p->count ? k : p->count; m > 0; m--) {
                    const int32_t at = (m - 1) * p->inner + i;
                    const TYPE w = y[at];
                    if (!(p->largest ? v > w || (IS_NAN(v) && !IS_NAN(w)) : v < w || (!IS_NAN(v) && IS_NAN(w)))) break;
                    if (m == p->count) continue;
                    y[at + p->inner] = w;
                    places[at + p->inner] = places[at];
                }
                if (m == p->count) continue;
                y[m * p->inner + i] = v;
                places[m * p->inner + i] = k;
            }
}

/* For f32, f64, i32, i64: The place of the first of the largest or smallest, or of what is not a number; `count` is 1. */
void micro_place_SUFFIX(const micro_picking *p, const TYPE *x, int64_t *y)
{
    int32_t n, i, k;
    for (n = 0; n < p->outer; n++, x += p->size * p->inner)
        for (i = 0; i < p->inner; i++) {
            TYPE found = x[i];
            int64_t place = 0;
            for (k = 1; k < p->size; k++) {
                const TYPE v = x[k * p->inner + i];
                if (!(p->largest ? v > found : v < found) && !(IS_NAN(v) && !IS_NAN(found))) continue;
                found = v;
                place = k;
            }
            *y++ = place;
        }
}

typedef struct {
    int32_t outer, size, inner, reverse;
} micro_running;

/* For f32, f64, i32, i64: Sums of all up to each one, or with `reverse` from each one on. */
void micro_running_sum_SUFFIX(const micro_running *p, const TYPE *x, TYPE *y)
{
    int32_t n, i, k;
    for (n = 0; n < p->outer; n++, x += p->size * p->inner, y += p->size * p->inner)
        for (i = 0; i < p->inner; i++) {
            TYPE sum = 0;
            for (k = 0; k < p->size; k++) {
                const int32_t at = (p->reverse ? p->size - 1 - k : k) * p->inner + i;
                sum = (TYPE)((WRAP)sum + (WRAP)x[at]);
                y[at] = sum;
            }
        }
}

/* For f32, f64, i32, i64: Products of all up to each one, or with `reverse` from each one on. */
void micro_running_product_SUFFIX(const micro_running *p, const TYPE *x, TYPE *y)
{
    int32_t n, i, k;
    for (n = 0; n < p->outer; n++, x += p->size * p->inner, y += p->size * p->inner)
        for (i = 0; i < p->inner; i++) {
            TYPE product = 1;
            for (k = 0; k < p->size; k++) {
                const int32_t at = (p->reverse ? p->size - 1 - k : k) * p->inner + i;
                product = (TYPE)((WRAP)product * (WRAP)x[at]);
                y[at] = product;
            }
        }
}

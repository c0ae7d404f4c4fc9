/* Sums of products of float32, four rows of weights at a time: each element of x is loaded once for four. */

/* sum[r] += x * row r of w, whose rows are `stride` elements apart. */
static void micro_add_products4(const float *x, const float *w, int32_t stride, int32_t count, float *sum)
{
    const float *w0 = w, *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    float s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
    int32_t i;
    for (i = 0; i < count; i++) {
        const float v = x[i];
        s0 += v * w0[i];
        s1 += v * w1[i];
        s2 += v * w2[i];
        s3 += v * w3[i];
    }
    sum[0] = s0;
    sum[1] = s1;
    sum[2] = s2;
    sum[3] = s3;
}

static float micro_products(const float *x, const float *w, int32_t count, float sum)
{
    int32_t i;
    for (i = 0; i < count; i++) sum += x[i] * w[i];
    return sum;
}

/* Within limits; what is not a number stays so. */
static float micro_clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

typedef struct {
    int32_t rows, depth, outputs;
    float low, high;
} micro_linear;

/* y [rows, outputs] = x [rows, depth] times w [outputs, depth], plus a bias or none. */
void micro_linear_f32(const micro_linear *p, const float *x, const float *w, const float *bias, float *y)
{
    int32_t row, o, k;
    for (row = 0; row < p->rows; row++, x += p->depth, y += p->outputs) {
        for (o = 0; o + 4 <= p->outputs; o += 4) {
            float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            for (k = 0; bias && k < 4; k++) sum[k] = bias[o + k];
            micro_add_products4(x, w + o * p->depth, p->depth, p->depth, sum);
            for (k = 0; k < 4; k++) y[o + k] = micro_clamp(sum[k], p->low, p->high);
        }
        for (; o < p->outputs; o++)
            y[o] = micro_clamp(micro_products(x, w + o * p->depth, p->depth, bias ? bias[o] : 0.0f), p->low, p->high);
    }
}

typedef struct {
    int32_t batch, rows, depth, columns;
    int32_t x_batch, x_row, x_depth; /* elements from one to the next */
    int32_t y_batch, y_depth, y_column;
    int32_t outer, x_outer, y_outer; /* batches in a batch */
    int32_t out_outer, out_batch, out_row;
} micro_matmul;

/* For f32, f64, i32, i64: Products of matrices that lie in any order. */
void micro_matmul_SUFFIX(const micro_matmul *p, const TYPE *x, const TYPE *y, TYPE *z)
{
    int32_t outer, b, i, j, k;
    for (outer = 0; outer < p->outer; outer++)
        for (b = 0; b < p->batch; b++)
            for (i = 0; i < p->rows; i++) {
                const TYPE *row = x + outer * p->x_outer + b * p->x_batch + i * p->x_row;
                TYPE *out = z + outer * p->out_outer + b * p->out_batch + i * p->out_row;
                for (j = 0; j < p->columns; j++) {
                    const TYPE *column = y + outer * p->y_outer + b * p->y_batch + j * p->y_column;
                    WRAP sum = 0;
                    for (k = 0; k < p->depth; k++) sum += (WRAP)row[k * p->x_depth] * (WRAP)column[k * p->y_depth];
                    out[j] = (TYPE)sum;
                }
            }
}

typedef struct {
    int32_t matrices, size;
} micro_squares;

/* For f32, f64: Determinants, by elimination with the largest pivots; scratch: a matrix. */
void micro_determinant_SUFFIX(const micro_squares *p, const TYPE *x, TYPE *y, void *scratch)
{
    double *m = (double *)scratch;
    const int32_t n = p->size;
    int32_t a, i, j, k;
    for (a = 0; a < p->matrices; a++, x += n * n) {
        double product = 1.0;
        for (i = 0; i < n * n; i++) m[i] = x[i];
        for (k = 0; k < n; k++) {
            int32_t pivot = k;
            for (i = k + 1; i < n; i++)
                if (fabs(m[i * n + k]) > fabs(m[pivot * n + k])) pivot = i;
            if (pivot != k) {
                for (j = 0; j < n; j++) {
                    const double held = m[k * n + j];
                    m[k * n + j] = m[pivot * n + j];
                    m[pivot * n + j] = held;
                }
                product = -product;
            }
            product *= m[k * n + k];
            if (m[k * n + k] == 0.0) break;
            for (i = k + 1; i < n; i++) {
                const double factor = m[i * n + k] / m[k * n + k];
                for (j = k; j < n; j++) m[i * n + j] -= factor * m[k * n + j];
            }
        }
        y[a] = (TYPE)product;
    }
}
